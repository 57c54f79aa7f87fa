// SPDX-License-Identifier: Apache-2.0
/* The streams of C++: text, blocks and positions. */
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

static void write() {
    std::ofstream text("table.txt");
    for (int row = 0; row < 4000; row++)
        text << row << ' ' << row * 0.5 << '\n';
    std::ofstream blocks("blocks.bin", std::ios::binary);
    const std::vector<double> values(5000, 1.5);
    for (int i = 0; i < 4; i++)
        blocks.write(reinterpret_cast<const char *>(values.data()), static_cast<std::streamsize>(8 * values.size()));
    blocks << std::flush;
}

static double read() {
    std::ifstream text("table.txt");
    double sum = 0, value;
    int row;
    while (text >> row >> value)
        sum += value;
    std::ifstream blocks("blocks.bin", std::ios::binary);
    blocks.seekg(8000);
    std::vector<double> values(1000);
    blocks.read(reinterpret_cast<char *>(values.data()), static_cast<std::streamsize>(8 * values.size()));
    return sum + values[0];
}

int main() {
    write();
    std::cout << read() << std::endl;
    return 0;
}
