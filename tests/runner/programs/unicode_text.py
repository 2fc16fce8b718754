# says = "Unicode of all planes, combining and wide characters."
print("äöü ß ∂ ∑ → 你好 𝄞 👩‍🔬 e\u0301 \u200b|\u202e|\ufeff|")
print(repr("\x1b[31m"), ascii("é"))
print("\x00\x07\x1b[2J\x9b")
