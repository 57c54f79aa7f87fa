// SPDX-License-Identifier: Apache-2.0
// Another object file with a static function of the same name.
static int helper(int a) { return 2 * a; }
int outside(int a) { return helper(a); }
