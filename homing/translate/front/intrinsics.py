"""Names of Fortran's intrinsic functions. A name is one only where the program declares nothing by it."""

from __future__ import annotations

_FUNCTIONS = """
abs achar acos acosh adjustl adjustr aimag aint all allocated alog alog10 amax1 amin1 amod anint any asin
asinh associated atan atan2 atanh bessel_j0 bessel_j1 bessel_jn bessel_y0 bessel_y1 bessel_yn bge bgt
bit_size ble blt btest c_funloc c_loc c_sizeof cabs ccos ceiling cexp char clog cmplx
command_argument_count conjg cos cosh count cshift csin csqrt dabs dacos dasin datan datan2 dble dcmplx
dconjg dcos dcosh dexp dfloat digits dim dimag dint dlog dmax1 dmin1 dmod dnint dot_product dprod dreal
dshiftl dshiftr dsign dsin dsinh dsqrt dtan dtanh eoshift epsilon erf erfc erfc_scaled exp exponent
extends_type_of findloc float floor fraction gamma huge hypot iabs iachar iall iand iany ibclr ibits
ibset ichar idim idint idnint ieee_is_nan ieor ifix image_index index int int_ptr_kind ior iparity
is_contiguous is_iostat_end is_iostat_eor ishft ishftc isign isnan kind lbound lcobound leadz len
len_trim lge lgt lle llt loc log log10 log_gamma logical maskl maskr matmul max max0 max1 maxexponent
maxloc maxval merge merge_bits min min0 min1 minexponent minloc minval mod modulo nearest new_line nint
norm2 not null num_images out_of_range pack parity popcnt poppar precision present product radix range
rank real reduce repeat reshape rrspacing same_type_as scale scan selected_char_kind selected_int_kind
selected_real_kind set_exponent shape shifta shiftl shiftr sign sin sinh size sngl spacing spread sqrt
storage_size sum tan tanh this_image tiny trailz transfer transpose trim ubound ucobound unpack verify
zabs zexp zsqrt
"""
INTRINSICS = frozenset(_FUNCTIONS.split())
#: Functions of an array's shape; they read no element.
_OF_SHAPE = """
allocated associated is_contiguous kind lbound present shape size storage_size ubound
"""
INQUIRIES = frozenset(_OF_SHAPE.split())
