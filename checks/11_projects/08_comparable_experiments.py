"""Judges lessons/11_projects/08_comparable_experiments.md."""

import json
import math
import statistics

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background("Write `table(lines)`", "A line is the JSON", "The values of a config")


def settings(rng, count):
    rates = rng.sample([1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2], count)
    return [
        {"lr": lr, "width": rng.choice((16, 32)), "opt": rng.choice(("sgd", "adam"))}
        for lr in rates
    ]


def line(rng, config, seed, score):
    pairs = [*config.items(), ("seed", seed)]
    rng.shuffle(pairs)
    rest = [("config", dict(pairs)), ("score", score), ("minutes", rng.randint(1, 9))]
    rng.shuffle(rest)
    return json.dumps(dict(rest))


def scores(rng, base, count):
    return [base + rng.uniform(-0.04, 0.04) for _ in range(count)]


def rows_of(answer, lines):
    infinity = "statistics takes no infinity: leave out what math.isfinite refuses."
    null = "A null of JSON is None in Python: ask for it before you compute with a score."
    with (
        advising(AttributeError, saying="numerator", hint=infinity),
        advising(TypeError, saying="None", hint=null),
    ):
        rows = answer.table(list(lines))
    if not isinstance(rows, list) or not all(
        isinstance(row, tuple) and len(row) == 5 and isinstance(row[0], dict) for row in rows
    ):
        fail("table returns no list of tuples of five", hint="(config, n, mean, error, failed)")
    return rows


def row_of(answer, lines, config):
    rows = [row for row in rows_of(answer, lines) if row[0] == config]
    count = f"the setting has {len(rows)} rows"
    hint = "One row for a setting, whatever the order of its keys, and no seed in its config."
    expect_true(len(rows) == 1, count, hint=hint)
    return rows[0]


@check(
    "one row for each setting",
    holds=[
        "The result has a row `(config, n, mean, error, failed)` per setting.",
        "The seed is no part of the setting.",
    ],
)
def one_row(answer, rng, device):
    a, b = settings(rng, 2)
    lines = [line(rng, c, s, 0.5) for c in (a, b) for s in range(3)]
    rng.shuffle(lines)
    rows = rows_of(answer, lines)
    hint = "Take the seed out of the config before you compare."
    expect_true(not any("seed" in row[0] for row in rows), "a row has a seed", hint=hint)
    row_of(answer, lines, a)
    expect_equal(len(rows), 2, name="the number of rows", hint=hint)
    # They differ in one word, and in one key.
    alike = [{**a, "opt": "sgd"}, {**a, "opt": "adam"}, {**a, "opt": "sgd", "depth": 2}]
    alike.append({**a, "opt": "sgd", "layers": 2})
    rows = rows_of(answer, [line(rng, c, s, 0.5) for c in alike for s in range(2)])
    hint = "A setting is all keys and all values, the seed apart."
    expect_equal(len(rows), 4, name="the number of rows of four settings", hint=hint)


@check(
    "the order of the keys", holds="The keys of a config may come in any order.", both_sides=True
)
def any_order(answer, rng, device):
    a = settings(rng, 1)[0]
    lines = []
    for seed, order in enumerate((list(a), list(a)[::-1])):
        config = {k: a[k] for k in order}
        lines.append(json.dumps({"config": {**config, "seed": seed}, "score": 0.5}))
        lines.append(json.dumps({"config": {"seed": seed + 2, **config}, "score": 0.5}))
    expect_equal(len(rows_of(answer, lines)), 1, name="the number of rows", hint="sort_keys=True.")


@check("the mean of the good runs", holds="`n` the others, and `mean` is over the others.")
def means(answer, rng, device):
    a = settings(rng, 1)[0]
    values = scores(rng, 0.5, rng.randint(2, 5))
    lines = [line(rng, a, s, v) for s, v in enumerate(values)]
    _, n, mean, _, _ = row_of(answer, lines, a)
    expect_equal(n, len(values), name="n")
    message = f"the mean is {mean}, expected {statistics.fmean(values)}"
    hint = "The mean of the runs, neither the best nor the median."
    expect_true(abs(mean - statistics.fmean(values)) < 1e-9, message, hint=hint)


@check(
    "the standard error",
    holds="`error` is their standard error, from the spread with n - 1.",
)
def errors(answer, rng, device):
    a = settings(rng, 1)[0]
    values = scores(rng, 0.5, rng.choice((2, 4, 5)))
    lines = [line(rng, a, s, v) for s, v in enumerate(values)]
    got, spread = row_of(answer, lines, a)[3], statistics.stdev(values)
    message = "error is the spread of the runs, and not the error of their mean"
    hint = "Divide the spread by the root of n."
    expect_true(abs(got - spread) > 1e-9, message, hint=hint)
    wanted = spread / math.sqrt(len(values))
    message = f"error is {got:.6f}, expected {wanted:.6f}"
    expect_true(abs(got - wanted) < 1e-9, message, hint="statistics.stdev has n - 1.")


@check("a single run has no error", holds="It is NaN for a single run.")
def single(answer, rng, device):
    a = settings(rng, 1)[0]
    extra = rng.choice(([], [line(rng, a, 8, math.nan)]))
    _, n, mean, error, _ = row_of(answer, [line(rng, a, 3, 0.75), *extra], a)
    expect_equal((n, mean), (1, 0.75), name="(n, mean) of one run")
    hint = "One run says nothing about the spread: neither 0 nor an error."
    expect_true(math.isnan(error), f"the error of one run is {error}", hint=hint)


@check(
    "the later line counts",
    holds="Of lines with the same setting and the same seed, the last one counts.",
)
def repeated(answer, rng, device):
    a = settings(rng, 1)[0]
    values = scores(rng, 0.6, 3)
    lines = [line(rng, a, 1, rng.choice((0.01, math.nan)))]
    lines += [line(rng, a, s, v) for s, v in enumerate(values)]
    _, n, mean, _, failed = row_of(answer, lines, a)
    hint = "A run that was repeated replaces the earlier one: a dict by seed."
    expect_equal((n, failed), (3, 0), name="(n, failed)", hint=hint)
    message = f"the mean is {mean}, expected {statistics.fmean(values)}"
    expect_true(abs(mean - statistics.fmean(values)) < 1e-9, message, hint=hint)
    lines.append(line(rng, a, 0, None))
    got = row_of(answer, lines, a)
    message = "a seed that failed when it ran again is no good run"
    expect_equal((got[1], got[4]), (2, 1), name="(n, failed)", hint=message)


@check(
    "what failed",
    holds=["A score of NaN, infinity or null is a failed run.", "`failed` counts those,"],
    both_sides=True,
)
def failures(answer, rng, device):
    a = settings(rng, 1)[0]
    values = scores(rng, 0.6, 2)
    hint = "A score of 0 is a number: only NaN, infinity and null are failures."
    zero = row_of(answer, [line(rng, a, s, 0.0) for s in range(2)], a)
    expect_equal((zero[1], zero[4]), (2, 0), name="(n, failed) of two scores of 0", hint=hint)
    for bad in (math.nan, math.inf, -math.inf, None):
        lines = [line(rng, a, s, v) for s, v in enumerate([*values, bad])]
        rng.shuffle(lines)
        _, n, mean, _, failed = row_of(answer, lines, a)
        hint = f"A score of {bad} is no number to take a mean of."
        expect_equal((n, failed), (2, 1), name="(n, failed)", hint=hint)
        finite = abs(mean - statistics.fmean(values)) < 1e-9
        expect_true(finite, f"the mean is {mean} with a score of {bad}", hint=hint)


@check(
    "a setting without a good run",
    holds="Without any good run, `mean` and `error` are NaN.",
)
def all_failed(answer, rng, device):
    a, b = settings(rng, 2)
    lines = [line(rng, a, 0, None), line(rng, a, 1, math.nan), line(rng, b, 0, 0.5)]
    _, n, mean, error, failed = row_of(answer, lines, a)
    expect_equal((n, failed), (0, 2), name="(n, failed)", hint="A failure has its row too.")
    both = math.isnan(mean) and math.isnan(error)
    expect_true(both, f"mean and error are {mean} and {error}", hint="math.nan for both.")


@check(
    "the best comes first",
    holds="The best mean comes first, whatever its error, and rows without a mean come last.",
)
def order(answer, rng, device):
    configs = settings(rng, 5)
    bases = [rng.uniform(0.05, 0.2), 0.4, 0.6, 0.8, math.nan]
    lines = [line(rng, c, s, base + 0.001 * s) for c, base in zip(configs, bases, strict=True)
             for s in range(3)]  # fmt: skip
    rng.shuffle(lines)
    got = [row[0] for row in rows_of(answer, lines)]
    wanted = [configs[k] for k in (3, 2, 1, 0, 4)]
    hint = "Sort by the mean, the largest first; a NaN compares with nothing."
    expect_equal(got, wanted, name="the settings in order", hint=hint)
    wide, narrow = configs[:2]
    lines = [line(rng, wide, s, v) for s, v in enumerate((0.5, 0.9))]
    lines += [line(rng, narrow, s, v) for s, v in enumerate((0.64, 0.66))]
    rng.shuffle(lines)
    got = [row[0] for row in rows_of(answer, lines)]
    hint = "The mean alone decides, not the mean minus its error."
    expect_equal(got, [wide, narrow], name="the settings in order", hint=hint)


@check("the lines stay", holds="`lines` stays as it is.")
def untouched(answer, rng, device):
    lines = [line(rng, c, s, 0.5) for c in settings(rng, 2) for s in range(2)]
    kept = list(lines)
    answer.table(lines)
    expect_equal(lines, kept, name="lines afterwards", hint="Work on what json.loads returns.")


def variant(*, seed=False, keys=True, last=True, drop=True, root=True, less=1, alone=math.nan,
            best=False, first=True, hide=False, infinite=False):  # fmt: skip
    def table(lines):
        runs = {}
        for r in map(json.loads, lines):
            config = {k: v for k, v in r["config"].items() if seed or k != "seed"}
            of_it = runs.setdefault(json.dumps(config, sort_keys=keys), {})
            of_it[r["config"]["seed"] if last else len(of_it)] = r["score"]
        rows = []
        for key, found in runs.items():
            values = [math.nan if v is None else v for v in found.values()]
            fine = (lambda v: v == v) if infinite else math.isfinite
            good = [v for v in values if fine(v)] if drop else values
            n = len(good)
            if hide and not n:
                continue
            mean = (max(good) if best else sum(good) / n) if n else math.nan
            error = alone
            if n > 1:
                squares = sum((v - sum(good) / n) ** 2 for v in good)
                error = math.sqrt(squares / (n - less)) / (math.sqrt(n) if root else 1)
            rows.append((json.loads(key), n, mean, error if n else math.nan, len(values) - n))
        return sorted(rows, key=lambda r: (r[2] != r[2], -r[2] if first else r[2]))

    return table


@mutant("a row for each run", caught_by=one_row)
def table(lines):
    return variant(seed=True)(lines)


@mutant("compares the learning rate alone", caught_by=one_row)
def table(lines):
    first, known = {}, []
    for r in map(json.loads, lines):
        config = first.setdefault(r["config"]["lr"], r["config"])
        known.append(json.dumps({**r, "config": {**config, "seed": r["config"]["seed"]}}))
    return variant()(known)


@mutant("compares values without their keys", caught_by=one_row)
def table(lines):
    first, known = {}, []
    for r in map(json.loads, lines):
        seed = r["config"].pop("seed")
        config = first.setdefault(str([r["config"][k] for k in sorted(r["config"])]), r["config"])
        known.append(json.dumps({**r, "config": {**config, "seed": seed}}))
    return variant()(known)


@mutant("takes a score of 0 for a failure", caught_by=failures)
def table(lines):
    rows = [json.loads(text) for text in lines]
    return variant()([json.dumps({**r, "score": r["score"] or None}) for r in rows])


@mutant("sorts by the mean minus its error", caught_by=order)
def table(lines):
    rows = variant()(lines)
    return sorted(rows, key=lambda r: -(r[2] - (r[3] if r[1] > 1 else 0)) if r[1] else math.inf)


@mutant("compares keys in their order", caught_by=any_order)
def table(lines):
    return variant(keys=False)(lines)


@mutant("takes the best run", caught_by=means)
def table(lines):
    return variant(best=True)(lines)


@mutant("spread for error", caught_by=errors)
def table(lines):
    return variant(root=False)(lines)


@mutant("the spread with n", caught_by=errors)
def table(lines):
    return variant(less=0)(lines)


@mutant("no error for a single run", caught_by=single)
def table(lines):
    return variant(alone=0.0)(lines)


@mutant("counts a repeated seed twice", caught_by=repeated)
def table(lines):
    return variant(last=False)(lines)


@mutant("keeps NaN in the mean", caught_by=failures)
def table(lines):
    return variant(drop=False)(lines)


@mutant("takes infinity for a score", caught_by=failures)
def table(lines):
    return variant(infinite=True)(lines)


@mutant("hides what failed", caught_by=all_failed)
def table(lines):
    return variant(hide=True)(lines)


@mutant("worst first", caught_by=order)
def table(lines):
    return variant(first=False)(lines)


@mutant("empties the list", caught_by=untouched)
def table(lines):
    rows = variant()(lines)
    lines.clear()
    return rows


@hinted(1, reaches=any_order)
def table(lines):
    runs = {}
    for text in lines:
        r = json.loads(text)
        config = dict(r["config"])
        seed = config.pop("seed")
        runs.setdefault(json.dumps(config, sort_keys=True), {})[seed] = r["score"]
    return [
        (json.loads(c), len(s), statistics.mean(s.values()),
         statistics.stdev(s.values()) if len(s) > 1 else 0.0, 0)
        for c, s in runs.items()
    ]  # fmt: skip


@accepted("compares dicts")
def table(lines):
    groups, last = [], {}
    for r in map(json.loads, lines):
        config = dict(r["config"])
        seed = config.pop("seed")
        if config not in groups:
            groups.append(config)
        last[groups.index(config), seed] = r["score"]
    rows = []
    for k, config in enumerate(groups):
        values = [v for (g, _), v in last.items() if g == k]
        good = [v for v in values if v is not None and abs(v) < math.inf]
        n = len(good)
        mean = statistics.fmean(good) if good else math.nan
        error = statistics.stdev(good) / math.sqrt(n) if n > 1 else math.nan
        rows.append((config, n, mean, error, len(values) - n))
    return sorted(rows, key=lambda r: r[2] if r[2] == r[2] else -math.inf, reverse=True)


@accepted("tensors and tuples")
def table(lines):
    import torch

    runs = {}
    for r in map(json.loads, lines):
        key = tuple(sorted((k, v) for k, v in r["config"].items() if k != "seed"))
        score = math.nan if r["score"] is None else r["score"]
        runs.setdefault(key, {})[r["config"]["seed"]] = score
    rows = []
    for key, found in runs.items():
        x = torch.tensor(list(found.values()), dtype=torch.float64)
        good = x[x.isfinite()]
        n = len(good)
        error = good.std().item() / n**0.5 if n > 1 else math.nan
        rows.append((dict(key), n, good.mean().item(), error, len(x) - n))
    rows.sort(key=lambda r: -r[2] if r[1] else math.inf)
    return rows
