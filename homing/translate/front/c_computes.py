"""Functions of C's library, and of C++'s, that do nothing but compute a value."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MATH = _words("""
    acos acosh asin asinh atan atan2 atanh cabs carg cbrt ccos ceil cexp cimag clog conj copysign cos
    cosh cpow creal csin csqrt erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb
    ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround nan nearbyint nextafter pow
    remainder rint round scalbn sin sinh sqrt tan tanh tgamma trunc
""")
COMPUTES = frozenset(name + suffix for name in _MATH for suffix in ("", "f", "l")) | _words("""
    abs atof atoi isalpha isdigit isfinite isinf isnan isspace labs llabs memcmp std::abs std::clamp std::max
    std::min strcmp strlen strncmp tolower toupper
""")
