"""The extension in a kernel as a notebook runs it."""

import re

import pytest

LOOP = """\
%%lens
a = torch.ones(8, 3)
w = torch.ones(3, 1, requires_grad=True)
for i in range(3):
    y = a @ w
    v = y.view(2, 4)
    loss = (v ** 2).mean()
    loss.backward()
v.shape
"""


def line(text: str, start: str) -> str:
    """The one line of a text that begins so, its runs of spaces folded."""
    (found,) = (one for one in text.splitlines() if one.strip().startswith(start))
    return " ".join(found.split())


def test_a_known_error_is_explained_below_its_traceback_with_the_tensors_of_the_line(kernel):
    ran = kernel("x, fc = torch.zeros(32, 10), nn.Linear(64, 12)\nfc(x)")
    assert (ran.kinds, ran.failed) == (["error", "display_data"], True)
    assert "mat1 and mat2 shapes cannot be multiplied" in ran.traceback
    (text,), (page,) = ran.shown, ran.pages
    assert "`x` is f32[32, 10] and `fc.weight` is f32[12, 64]" in " ".join(text.split())
    assert "tensortutor show " in text
    assert "tensors x f32[32, 10], values 0" in line(text, "tensors") + " "
    assert "<strong>The inner dimensions differ</strong>" in page
    assert re.search(r"<td[^>]*>fc\.weight</td><td[^>]*>f32\[12, 64\], requires grad", page)


def test_the_function_of_an_earlier_cell_is_where_the_error_lies(kernel):
    kernel("def apply(layer, batch):\n    return layer(batch)")
    ran = kernel("apply(nn.Linear(4, 2), torch.ones(5))")
    assert "`batch` is f32[5]" in " ".join(ran.shown[0].split())


def test_of_an_unknown_error_the_tensors_alone_are_told(kernel):
    assert kernel("z = torch.ones(2, 3)\nz.shapee").shown[0].split() == [
        "tensors", "z", "f32[2,", "3],", "values", "1",
    ]  # fmt: skip
    assert kernel("raise ValueError('nothing to do with tensors')").shown == []
    assert kernel("{}['absent']").shown == []
    assert kernel("1 / 1").kinds == ["execute_result"]


def test_what_an_error_was_raised_from_is_explained_too(kernel):
    ran = kernel(
        "try:\n    torch.ones(2) + torch.ones(3)\n"
        "except RuntimeError as error:\n    raise ValueError('mine') from error"
    )
    assert line(ran.shown[0], "about").startswith("about RuntimeError: The size of tensor a")
    assert "These shapes do not broadcast" in ran.shown[0]


def test_the_lens_shows_the_lines_the_tensors_and_the_graph_of_the_last_scalar(kernel):
    ran = kernel(LOOP)
    assert (ran.kinds, ran.failed) == (["execute_result", "display_data"], False)
    assert ran.value == "torch.Size([2, 4])"
    (text,), (page,) = ran.shown, ran.pages
    # Numbers are those of the notebook, where `%%lens` is line 1.
    assert line(text, "6 ") == "6 v = y.view(2, 4) v: f32[2, 4] view ×3"
    assert line(text, "loss ").startswith("loss f32[] ()")
    assert "Graph of loss, line 8" in text
    assert line(text, "leaf").startswith("leaf w: f32[3, 1]")
    assert re.search(r"<td[^>]*>6</td><td[^>]*>    v = .*</td><td[^>]*>v: f32\[2, 4\] view", page)
    assert "<strong>Graph of loss, line 8" in page
    assert kernel("i, loss.item(), w.grad.shape").value == "(2, 9.0, torch.Size([3, 1]))"


def test_the_lens_tells_of_the_cells_names_and_not_of_the_shells(kernel):
    kernel("unrelated = torch.ones(7, 7, requires_grad=True)\nmade = unrelated.sum()")
    kernel("made * 2")
    text = kernel("%%lens\nb = made + 1\nc = torch.ones(3)\nd = c[1:]").shown[0]
    names = [one.split()[0] for one in text.partition("Tensors\n")[2].splitlines()[1:5]]
    assert names == ["made", "b", "c", "d"]
    assert "c, d share 12 B." in text
    # The graph goes back to what an earlier cell has made, by its name there.
    assert "leaf  unrelated: f32[7, 7]" in text


def test_the_value_of_a_cell_is_shown_as_ever(kernel):
    ran = kernel("%%lens\n(torch.ones(3, requires_grad=True) * 2).sum()")
    assert ran.value == "tensor(6., grad_fn=<SumBackward0>)"
    assert "Graph of last value" in ran.shown[0]
    assert kernel("_").value == ran.value
    assert "execute_result" not in kernel("%%lens\ntorch.ones(3);").kinds


def test_functions_of_the_cell_are_followed(kernel):
    text = kernel("%%lens\ndef halve(t):\n    u = t / 2\n    return u\nh = halve(torch.ones(4))")
    assert line(text.shown[0], "3 ") == "3 u = t / 2 u: f32[4]"
    assert "halve: u" in text.shown[0]


def test_loops_are_followed_for_their_first_passes_and_with_all_to_the_end(kernel):
    cell = "\nt = torch.zeros(1)\nfor _n in range(100):\n    t = t + 1\n"
    assert "first 64" in (first := kernel(f"%%lens{cell}")).shown[0]
    assert "%%lens --all follows all" in first.shown[0]
    assert "%%lens --all follows all" in first.pages[0]
    assert "×100" in kernel(f"%%lens --all{cell}").shown[0]


def test_an_error_under_the_lens_has_its_own_traceback_and_ends_the_notebook(kernel):
    ran = kernel("%%lens\n\np = torch.ones(2, 3)\nq = torch.ones(4)\nr = p + q\ns = 1")
    assert (ran.kinds, ran.failed) == (["error", "display_data", "display_data"], True)
    assert "----> 5 r = p + q" in ran.traceback
    assert "tensortutor" not in ran.traceback
    assert "run_cell_magic" not in ran.traceback
    explained, seen = ran.shown
    assert "These shapes do not broadcast" in explained
    assert "Line 5: these do not fit" in seen
    assert "Dimension -1: 3 and 4 differ" in seen
    assert "Dimension -1: 3 and 4 differ" in ran.pages[1]
    assert kernel("p.shape, 's' in globals()").value == "(torch.Size([2, 3]), False)"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%lens\nawait thing()", "%%lens cannot follow `await` outside a function"),
        ("%%lens\n[x async for x in y]", "%%lens cannot follow `await` outside a function"),
        ("%%lens\nx = = 3", "%%lens has not run this cell: it is not Python."),
        ("%%lens --foo\nx", "%%lens takes no argument but --all"),
    ],
)
def test_a_cell_that_cannot_be_followed_is_refused_in_a_sentence(kernel, cell, says):
    ran = kernel(f"{cell}\nnever_set = 1")
    assert ran.failed
    assert says in ran.printed
    assert ran.shown == []
    assert kernel("'never_set' in globals()").value == "False"


def test_magics_and_shell_commands_work_inside(kernel):
    ran = kernel("%%lens\n%env MINE=1\nm = torch.ones(2)\n!echo from the shell")
    assert "env: MINE=1" in ran.printed
    assert "from the shell" in ran.printed
    assert line(ran.shown[0], "3 ") == "3 m = torch.ones(2) m: f32[2]"


def test_text_of_others_is_never_markup(kernel):
    kernel("table = {'<img src=x onerror=1>': torch.ones(2)}")
    ran = kernel("%%lens\ntable['<img src=x onerror=1>'] + torch.ones(3)")
    caused = kernel(
        "try:\n    torch.ones(1) @ torch.ones(2)\nexcept RuntimeError as error:\n"
        "    error.args = (f'{error} <script>1</script>',)\n    raise ValueError from error"
    )
    pages = [*ran.pages, *caused.pages]
    assert [page.count("&lt;script") for page in pages] == [0, 0, 1]
    assert [page.count("&lt;img") > 0 for page in pages] == [True, True, False]
    assert not any(tag in page for page in pages for tag in ("<img", "<script"))


def test_hostile_objects_change_nothing(kernel):
    kernel(
        "class Mute(RuntimeError):\n    def __str__(self):\n        raise OSError('mute')\n"
        "class Odd(torch.Tensor):\n    def __repr__(self, **_):\n        raise OSError('odd')\n"
        "odd = torch.ones(2).as_subclass(Odd)"
    )
    for ran in (kernel("raise Mute()"), kernel("%%lens\nx = torch.ones(2)\nraise Mute()")):
        assert "Mute" in ran.traceback
        assert "tensortutor failed" not in ran.printed
    assert "x: f32[2]" in ran.shown[-1]
    assert "odd  f32[2]" in kernel("odd.shapee").shown[0]
    seen = kernel("%%lens\nodder = odd * 2\nbig = torch.zeros(1).expand(1 << 33)")
    assert line(seen.shown[0], "2 ") == "2 odder = odd * 2 odder: f32[2]"
    assert "4 B for 32 GiB" in seen.shown[0]


def test_a_tensor_that_was_deleted_is_gone(kernel):
    kernel("import gc, weakref\nold = torch.ones(3)\nkept = weakref.ref(old)")
    kernel("%%lens\nf = torch.ones(3, requires_grad=True)\ng = (f * old).sum()\ng.backward();")
    kernel("%%lens\nf + torch.ones(4)")
    assert kernel("del f, g, old\ngc.collect()\nkept() is None").value == "True"


def test_the_extension_leaves_nothing_behind(kernel):
    assert kernel("%unload_ext tensortutor").outputs == []
    assert kernel("torch.ones(2) + torch.ones(3)").shown == []
    assert "not found" in kernel("%%lens\n1").printed
    assert kernel("%load_ext tensortutor").outputs == []
    assert len(kernel("torch.ones(2) + torch.ones(3)").shown) == 1


def test_nothing_of_the_app_is_loaded(kernel):
    wanted = "'textual', 'rich.app', 'tensortutor.ui', 'tensortutor.runner', 'tensortutor.learner'"
    assert kernel(f"import sys\n[name for name in ({wanted}) if name in sys.modules]").value == "[]"
