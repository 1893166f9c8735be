// Names of arrays as their author wrote them, from the names that compilers give to symbols.
#pragma once

#include <string>
#include <string_view>

namespace homing {

/// gfortran: `__mod_MOD_x` is mod::x, `blk_` the COMMON block /blk/, `x.12` the SAVE variable (or C function
/// static) x; flang: `_QMmodEx` is mod::x, `_QMmodFsubEx` mod::sub::x, `_QFEx` x of the main program. C++
/// names are demangled. All others stay as they are.
std::string readable_symbol(std::string_view symbol);

} // namespace homing
