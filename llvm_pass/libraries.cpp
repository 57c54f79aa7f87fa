// SPDX-License-Identifier: Apache-2.0
#include "libraries.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

#include <array>
#include <cctype>
#include <string>

using namespace llvm;

namespace quipu {
namespace {

/// The names at the begin of a C++ linker name (Itanium C++ ABI, section 5.1.4, nested-name), up to the first name with
/// template arguments: namespaces, classes, function. Operators and constructors have no name.
struct Nested {
    SmallVector<StringRef, 6> Names;
    StringRef Rest;          ///< text after the last name
    bool IsLocal = false;    ///< a local entity: the names are the names of the enclosing function
    bool IsConst = false;    ///< a const member function
    bool IsTemplate = false; ///< the last name, or an operator after it, has template arguments

    /// Returns the names that may be namespaces. The last name is the function, or a class if a constructor or template
    /// arguments follow.
    ArrayRef<StringRef> scopes() const {
        const bool Last = !IsLocal && (Rest.starts_with("E") || Rest.starts_with("I") || isStructor());
        return ArrayRef(Names).drop_back(Last && !Names.empty() ? 1 : 0);
    }
    bool isOperator() const { return Rest.size() > 2 && islower(Rest[0]) && islower(Rest[1]); }
    bool isStructor() const {
        return Rest.size() > 1 && (Rest[0] == 'C' || Rest[0] == 'D') && (isDigit(Rest[1]) || Rest[1] == 'I');
    }
};

/// Removes a name, with its preceding length and its ABI tags, from the start of `Rest`. Returns false if there is
/// none.
bool takeName(StringRef &Rest, StringRef &Name) {
    size_t Length = 0;
    Rest.consume_front("L"); // internal linkage
    if (Rest.empty() || !isDigit(Rest.front()) || Rest.consumeInteger(10, Length) || Length > Rest.size())
        return false;
    Name = Rest.take_front(Length);
    Rest = Rest.drop_front(Length);
    StringRef Tag;
    while (Rest.size() > 1 && Rest[0] == 'B' && isDigit(Rest[1])) {
        Rest = Rest.drop_front();
        takeName(Rest, Tag);
    }
    return true;
}

Nested nestedName(StringRef Rest) {
    Nested Found;
    if (!Rest.consume_front("_Z"))
        return Found;
    while (Rest.consume_front("Z"))
        Found.IsLocal = true;
    if (Rest.starts_with("St"))
        Found.Names.push_back("std");
    if (!Rest.consume_front("N"))
        return Found;
    while (!Rest.empty() && StringRef("KVrRO").contains(Rest.front())) {
        Found.IsConst |= Rest.front() == 'K';
        Rest = Rest.drop_front();
    }
    // St is namespace std; S with another of these letters is a class in std.
    if (Rest.size() > 1 && Rest[0] == 'S' && StringRef("tabsiod").contains(Rest[1])) {
        Found.Names.push_back("std");
        Rest = Rest.drop_front(2);
    }
    for (StringRef Name; takeName(Rest, Name);) {
        Found.Names.push_back(Name);
        if (Rest.starts_with("I"))
            break;
    }
    Found.Rest = Rest;
    Found.IsTemplate = Rest.starts_with("I") || (Found.isOperator() && Rest[2] == 'I');
    return Found;
}

std::string joined(ArrayRef<StringRef> Names) { return join(Names.begin(), Names.end(), "::"); }

bool isImplementationName(StringRef Name) {
    if (Name.starts_with("__"))
        return true;
    const std::string Lower = Name.trim('_').lower();
    return is_contained(std::array{"impl", "detail", "details", "internal"}, Lower) ||
           any_of(std::array{"_impl", "_detail", "_internal"},
                  [&](const char *End) { return StringRef(Lower).ends_with(End); });
}

/// Returns whether several files may define the function: whether it is an inline function or a template. A template
/// has local linkage if one of its arguments is a type of this file.
bool isOfHeader(const Function &F, const Nested &Known) {
    return !is_contained(Known.scopes(), "_GLOBAL__N_1") &&
           (F.hasLinkOnceLinkage() || F.hasWeakODRLinkage() || F.hasAvailableExternallyLinkage() ||
            (F.hasLocalLinkage() && Known.IsTemplate));
}

} // namespace

Libraries::Libraries(const Module &M) {
    for (const Function &F : M) {
        const Nested Known = nestedName(F.getName());
        const ArrayRef<StringRef> Names(Known.Names);
        if (Known.IsLocal || Names.empty())
            continue;
        if (Known.isStructor())
            Classes.insert(joined(Names));
        else if (Known.IsConst && (Known.isOperator() || Known.Rest.starts_with("E")))
            Classes.insert(joined(Known.scopes()));
    }
    StringSet<> Own;
    for (const Function &F : M) {
        const Nested Known = nestedName(F.getName());
        const ArrayRef<StringRef> Scopes = Known.scopes();
        if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || Scopes.empty())
            continue;
        if (!F.hasLocalLinkage() && !isOfHeader(F, Known))
            Own.insert(Scopes.front());
        else if (isOfHeader(F, Known) && isInner(F.getName()))
            Roots.insert(Scopes.front());
    }
    for (const auto &Entry : Own)
        Roots.erase(Entry.getKey());
    Roots.insert("std");
    Roots.insert("__gnu_cxx");
}

bool isOfCxxLibrary(StringRef Name) {
    const Nested Known = nestedName(Name);
    const ArrayRef<StringRef> Scopes = Known.scopes();
    return !Scopes.empty() && (Scopes.front() == "std" || Scopes.front() == "__gnu_cxx");
}

bool Libraries::isInner(StringRef Name) const {
    const Nested Known = nestedName(Name);
    const ArrayRef<StringRef> Scopes = Known.scopes();
    if (Scopes.empty() || isOfCxxLibrary(Name))
        return false; // selection.cpp has separate rules for the C++ library
    for (size_t I = 0; I < Scopes.size() && !Classes.contains(joined(Scopes.take_front(I + 1))); I++)
        if (isImplementationName(Scopes[I]) && (I > 0 || Scopes[I].starts_with("__")))
            return true;
    return false;
}

Owner Libraries::ownerOf(const Function &F) const {
    const Nested Known = nestedName(F.getName());
    if (Known.scopes().empty() || !isOfHeader(F, Known))
        return Owner::Program;
    if (isInner(F.getName()))
        return Owner::LibraryInside;
    return Roots.contains(Known.scopes().front()) ? Owner::Library : Owner::Program;
}

bool Libraries::isOfLibrary(const Function &F) const {
    const Nested Known = nestedName(F.getName());
    return !Known.scopes().empty() && Roots.contains(Known.scopes().front()) && isOfHeader(F, Known);
}

bool Libraries::isCalledFromOutside(const Function &F) const {
    const Nested Known = nestedName(F.getName());
    return any_of(F.users(), [&](const User *U) {
        const auto *Call = dyn_cast<CallBase>(U);
        if (!Call || Call->getCalledOperand() != &F || isOfLibrary(*Call->getFunction()))
            return false;
        const Nested Caller = nestedName(Call->getFunction()->getName());
        return Caller.scopes().empty() || Known.scopes().empty() || Caller.scopes().front() != Known.scopes().front();
    });
}

} // namespace quipu
