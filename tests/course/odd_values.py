"""TOML values that nobody means: huge, deep, negative, of another type."""

from hypothesis import strategies as st

DEEP = {
    "brackets": "[" * 100_000,
    "tables": "{a=" * 100_000,
    "nested": "[" * 300 + "]" * 300,
}
NUMBERS = {
    "5,000 digits": "1" * 5000,
    "400 digits": "1" * 400,
    "5,000 hexadecimal digits": "0x" + "f" * 5000,
    "1e300": "1e300",
    "1e400": "1e400",
    "nan": "nan",
    "inf": "inf",
    "negative": "-3",
    "zero": "0",
    "tiny": "1e-300",
    "truth": "true",
    "text": '"many"',
}
ODD = {**DEEP, **NUMBERS}

values = st.one_of(
    st.sampled_from(list(ODD.values())),
    st.integers().map(str),
    st.floats().map(str),
    st.text(st.characters(codec="utf-8"), max_size=20),
)
