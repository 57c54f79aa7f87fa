// SPDX-License-Identifier: Apache-2.0
#include "sample_options.h"

#include <stdlib.h>
#include <string.h>

namespace quipu {
namespace {

constexpr unsigned long most_rate = 10000, second = 1000000000;

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

/* Reads a number at `*at`, and moves `*at` behind it. */
bool read_number(const char **at, uint64_t *number) {
    char *end = nullptr;
    if (**at < '0' || **at > '9')
        return false;
    *number = strtoull(*at, &end, 0);
    *at = end;
    return true;
}

/* Reads type:config[:config1[:config2]][k]. */
bool read_numbers(const char **at, CounterEvent *event) {
    uint64_t type = 0;
    if (!read_number(at, &type) || type > UINT32_MAX || *(*at)++ != ':' || !read_number(at, &event->config[0]))
        return false;
    event->type = static_cast<uint32_t>(type);
    for (int i = 1; i < 3 && **at == ':'; i++) {
        ++*at;
        if (!read_number(at, &event->config[i]))
            return false;
    }
    event->with_kernel = **at == 'k';
    *at += event->with_kernel;
    return true;
}

/* Reads [-]NUMBERS or [-]@NAME. */
bool read_event(const char **at, CounterEvent *event) {
    event->negative = **at == '-';
    *at += event->negative;
    if (**at != '@')
        return read_numbers(at, event);
    const size_t length = strcspn(++*at, "+;");
    if (length == 0 || length >= sizeof event->papi)
        return false;
    memcpy(event->papi, *at, length);
    *at += length;
    return true;
}

bool read_counter(const char **at, SampleOptions *options) {
    size_t length = 0;
    while (is_name((*at)[length]))
        length++;
    if (length == 0 || (*at)[length] != '=' || options->counters == most_counters || length >= sizeof options->names[0])
        return false;
    memcpy(options->names[options->counters], *at, length);
    *at += length;
    do {
        ++*at; /* skip = or + */
        if (options->events == most_events)
            return false;
        CounterEvent *event = &options->event[options->events++];
        event->counter = options->counters;
        if (!read_event(at, event))
            return false;
    } while (**at == '+');
    options->counters++;
    return true;
}

} // namespace

const char *read_sample_options(const char *rate, const char *counters, SampleOptions *options) {
    *options = {};
    uint64_t hertz = 0;
    if (!rate || !*rate)
        return counters && *counters ? "QUIPU_COUNTERS needs QUIPU_SAMPLE=N, the number of samples per second"
                                     : nullptr;
    const char *at = rate;
    if (!read_number(&at, &hertz) || *at || hertz > most_rate)
        return "QUIPU_SAMPLE must be a number of samples per second, 10000 at most, 0 for none";
    options->period = hertz ? second / hertz : 0;
    at = counters ? counters : "";
    while (options->period && *at) {
        const bool read = read_counter(&at, options), ended = !*at, separated = *at == ';';
        at += separated;
        if (!read || !(ended || separated))
            return "QUIPU_COUNTERS must be NAME=TYPE:CONFIG… or NAME=@EVENT, several with ; between them";
    }
    return nullptr;
}

} // namespace quipu
