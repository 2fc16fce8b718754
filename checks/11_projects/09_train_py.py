"""Judges lessons/11_projects/09_train_py.md."""

import argparse
import contextlib
import dataclasses
import io

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "On resume, a setting can come",
    "Write `settings(Config, argv, saved=None)`",
    "`Config` is a frozen dataclass",
    "A call that may help",
    "With `ArgumentParser(argument_default",
)

FIELDS = {"lr": 0.1, "momentum": 0.9, "steps": 60, "width": 16, "augment": True, "amp": False,
          "optimizer": "sgd", "schedule": "cosine"}  # fmt: skip
WORDS = ("adam", "lion", "linear", "none")


def some_config(rng):
    """A dataclass with a field of each type, in any order."""
    names = [rng.choice(pair) for pair in (("lr", "momentum"), ("steps", "width"),
             ("optimizer", "schedule"))] + ["augment", "amp"]  # fmt: skip
    rng.shuffle(names)
    fields = [(name, type(FIELDS[name]), FIELDS[name]) for name in names]
    return dataclasses.make_dataclass("Config", fields, frozen=True)


def other(rng, default):
    """A value of the same type that is not the default."""
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        return rng.choice(WORDS)
    if isinstance(default, int):
        return rng.randint(100, 999)
    return round(rng.uniform(0.001, 0.09), 4)


def all_other(rng, config):
    return {f.name: other(rng, f.default) for f in dataclasses.fields(config)}


def typed(name, value):
    if isinstance(value, bool):
        return ["--" + name if value else "--no-" + name]
    return ["--" + name, str(value)]


def asked(answer, config, argv, saved=None):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            got = answer.settings(config, argv, saved)
        except SystemExit as end:
            message = f"{' '.join(argv) or 'an empty line'!r} leaves with status {end.code}"
            fail(message, hint="It is a good command line. " + said.getvalue().strip()[-200:])
    expect_true(isinstance(got, config), "settings returns no Config", hint="Config(**...)")
    return got


@check(
    "what was typed counts, in its type",
    holds="A field `lr` is typed as `--lr 0.1` and gets the type of its default.",
)
def values(answer, rng, device):
    config = some_config(rng)
    hint = "A field that was not typed has its default."
    expect_equal(asked(answer, config, []), config(), name="an empty line", hint=hint)
    for name, value in all_other(rng, config).items():
        if isinstance(value, bool):
            continue
        got = getattr(asked(answer, config, typed(name, value)), name)
        hint = "argparse hands out text unless it knows the type."
        expect_equal(got, value, name=f"{name} of {' '.join(typed(name, value))!r}", hint=hint)


@check("an underscore stays", holds="An underscore stays: `--batch_size 32`.")
def underscore(answer, rng, device):
    fields = [("batch_size", int, 32), ("weight_decay", float, 0.01)]
    config = dataclasses.make_dataclass("Config", fields, frozen=True)
    for name, value in all_other(rng, config).items():
        got = asked(answer, config, ["--" + name, str(value)])
        hint = "The option is two dashes and the field's name as it is."
        expect_equal(getattr(got, name), value, name=f"{name} of '--{name} {value}'", hint=hint)


@check(
    "flags are switched",
    holds="A bool field `augment` is switched by `--augment` and `--no-augment`.",
)
def flags(answer, rng, device):
    config = some_config(rng)
    for name in ("augment", "amp"):
        for value in (True, False):
            got = getattr(asked(answer, config, typed(name, value)), name)
            what = f"{name} of {typed(name, value)[0]!r}"
            expect_equal(got, value, name=what, hint="BooleanOptionalAction makes both options.")


@check(
    "the checkpoint counts where nothing was typed",
    holds=[
        "A field that was not typed takes its value from `saved`, and if it is not there, the "
        "default.",
        "What was typed beats what the checkpoint has, and that beats the default.",
    ],
)
def resumed(answer, rng, device):
    config = some_config(rng)
    saved = all_other(rng, config)
    hint = "Defaults of argparse look like typed words. Leave them out of the parser."
    got = asked(answer, config, [], saved)
    expect_equal(dataclasses.asdict(got), saved, name="the settings of a checkpoint", hint=hint)
    name = rng.choice(list(saved))
    part = {name: saved[name]}
    wanted = {**dataclasses.asdict(config()), **part}
    got = asked(answer, config, [], part)
    what = "the settings of a checkpoint with one field"
    expect_equal(dataclasses.asdict(got), wanted, name=what, hint="The rest has its default.")


@check(
    "typed words beat the checkpoint",
    holds=[
        "A typed value counts even where it equals the default.",
        "What was typed beats what the checkpoint has",
    ],
)
def typed_first(answer, rng, device):
    config = some_config(rng)
    saved = all_other(rng, config)
    for f in dataclasses.fields(config):
        for value in (other(rng, f.default), f.default):
            got = asked(answer, config, typed(f.name, value), saved)
            hint = "Typed words come last; a typed default is typed too."
            what = f"the settings of {' '.join(typed(f.name, value))!r} over a checkpoint"
            wanted = {**saved, f.name: value}
            expect_equal(dataclasses.asdict(got), wanted, name=what, hint=hint)


@check("the checkpoint stays", holds="`saved` is a dict, may be None, and stays as it is.")
def untouched(answer, rng, device):
    config = some_config(rng)
    saved = all_other(rng, config)
    kept = dict(saved)
    asked(answer, config, ["--augment"], saved)
    expect_equal(saved, kept, name="saved afterwards", hint="Work on a copy of it.")


def expect_refused(answer, config, argv, hint):
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            answer.settings(config, argv)
        except SystemExit as end:
            expect_equal(end.code, 2, name=f"the status of {' '.join(argv)!r}", hint=hint)
            return
    fail(f"{' '.join(argv)!r} is taken for a good command line", hint=hint)


@check(
    "what makes no sense leaves with status 2",
    holds="A command line that makes no sense leaves the program with status 2.",
)
def refused(answer, rng, device):
    config = some_config(rng)
    number = next(f.name for f in dataclasses.fields(config) if type(f.default) is int)
    hint = "parse_args refuses what it does not know, parse_known_args does not."
    lines = (["--lrr", "0.1"], ["--" + number, "ten"], ["--" + number, "1.5"], ["--" + number],
             ["0.1"], ["--augment", "False"])  # fmt: skip
    for argv in lines:
        expect_refused(answer, config, argv, hint)


@check("names are typed in full", holds="Shortened names make no sense.")
def in_full(answer, rng, device):
    config = some_config(rng)
    expect_refused(answer, config, ["--aug"], "allow_abbrev=False.")
    number = next(f.name for f in dataclasses.fields(config) if type(f.default) is int)
    expect_refused(answer, config, ["--" + number[:3], "9"], "allow_abbrev=False.")


def variant(
    *, text=False, bools=False, typed_wins=True, known=False, defaults=False, differs=False,
    checkpoint=True, abbreviated=False, in_place=False,
):  # fmt: skip
    def settings(Config, argv, saved=None):
        p = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=abbreviated)
        for f in dataclasses.fields(Config):
            more = {"default": f.default} if defaults or differs else {}
            if not isinstance(f.default, bool):
                kind = str if text else type(f.default)
                p.add_argument("--" + f.name, type=kind, **more)
            elif bools:
                p.add_argument("--" + f.name, type=bool, nargs="?", const=True, **more)
                p.add_argument("--no-" + f.name, dest=f.name, type=bool, nargs="?", const="no",
                               **more)  # fmt: skip
            else:
                p.add_argument("--" + f.name, action=argparse.BooleanOptionalAction, **more)
        words = vars(p.parse_known_args(argv)[0] if known else p.parse_args(argv))
        if differs:
            old = {f.name: f.default for f in dataclasses.fields(Config)}
            words = {k: v for k, v in words.items() if v != old[k]}
        base = saved if saved and checkpoint else {}
        if in_place:
            base.update(words)
        return Config(**({**base, **words} if typed_wins else {**words, **base}))

    return settings


@mutant("leaves text as it is", caught_by=values)
def settings(Config, argv, saved=None):
    return variant(text=True)(Config, argv, saved)


@mutant("writes underscores as dashes", caught_by=underscore)
def settings(Config, argv, saved=None):
    p = argparse.ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=False)
    for f in dataclasses.fields(Config):
        if isinstance(f.default, bool):
            p.add_argument("--" + f.name, action=argparse.BooleanOptionalAction)
        else:
            p.add_argument("--" + f.name.replace("_", "-"), type=type(f.default))
    return Config(**{**(saved or {}), **vars(p.parse_args(argv))})


@mutant("type=bool", caught_by=flags)
def settings(Config, argv, saved=None):
    return variant(bools=True)(Config, argv, saved)


@mutant("forgets the checkpoint", caught_by=resumed)
def settings(Config, argv, saved=None):
    return variant(checkpoint=False)(Config, argv, saved)


@mutant("argparse's defaults beat the checkpoint", caught_by=resumed)
def settings(Config, argv, saved=None):
    return variant(defaults=True)(Config, argv, saved)


@mutant("the checkpoint beats the command line", caught_by=typed_first)
def settings(Config, argv, saved=None):
    return variant(typed_wins=False)(Config, argv, saved)


@mutant("typed is what differs from the default", caught_by=typed_first)
def settings(Config, argv, saved=None):
    return variant(differs=True)(Config, argv, saved)


@mutant("writes into the checkpoint", caught_by=untouched)
def settings(Config, argv, saved=None):
    return variant(in_place=True)(Config, argv, saved)


@mutant("parses what it knows", caught_by=refused)
def settings(Config, argv, saved=None):
    return variant(known=True)(Config, argv, saved)


@mutant("takes shortened names", caught_by=in_full)
def settings(Config, argv, saved=None):
    return variant(abbreviated=True)(Config, argv, saved)


@hinted(1, reaches=flags)
def settings(Config, argv, saved=None):
    p = argparse.ArgumentParser()
    for f in dataclasses.fields(Config):
        if isinstance(f.default, bool):
            p.add_argument("--" + f.name, action=argparse.BooleanOptionalAction, default=f.default)
        else:
            p.add_argument("--" + f.name, type=type(f.default), default=f.default)
    return Config(**vars(p.parse_args(argv)))


@accepted("None means not typed")
def settings(Config, argv, saved=None):
    p = argparse.ArgumentParser(allow_abbrev=False)
    for f in dataclasses.fields(Config):
        if isinstance(f.default, bool):
            p.add_argument("--" + f.name, dest=f.name, action="store_true", default=None)
            p.add_argument("--no-" + f.name, dest=f.name, action="store_false", default=None)
        else:
            p.add_argument("--" + f.name, type=type(f.default), default=None)
    given = {k: v for k, v in vars(p.parse_args(argv)).items() if v is not None}
    return dataclasses.replace(dataclasses.replace(Config(), **(saved or {})), **given)


@accepted("the checkpoint's values as defaults of argparse")
def settings(Config, argv, saved=None):
    p = argparse.ArgumentParser(allow_abbrev=False)
    for f in dataclasses.fields(Config):
        kind = {"type": type(f.default)}
        if isinstance(f.default, bool):
            kind = {"action": argparse.BooleanOptionalAction}
        p.add_argument("--" + f.name, default=(saved or {}).get(f.name, f.default), **kind)
    return Config(**vars(p.parse_args(argv)))
