"""Judges lessons/13_language_models/01_byte_pairs.md."""

import itertools
from collections import Counter

from tensortutor.checking import accepted, check, expect_equal, expect_true, hinted, mutant

WEIGHT = "A word that occurs 50 times gives each of its pairs 50 counts."
ANEW = "After each merge the pairs are others: count them again in every round."
APART = "Words are apart: no pair reaches from one into the next, and a single token has none."
RUNS = "aaaaa is aa aa a: a token belongs to one pair, counted from the left."
TIES = "Of equal counts the smaller tuple comes first: then two machines have the same tokens."
RANK = "The pair that stands earliest in merges goes first, wherever it is in the text."
BYTES = "Start from the bytes of UTF-8: each is a token, 0 to 255."


def replaced(ids, pair, new):
    """From the left: a pair is closed as soon as it stands at the end of what is written."""
    out = []
    for token in ids:
        if out and (out[-1], token) == pair:
            out[-1] = new
        else:
            out.append(token)
    return out


def pairs_of(words):
    pairs = Counter()
    for ids, count in words:
        for pair in itertools.pairwise(ids):
            pairs[pair] += count
    return pairs


def trained(counts, n, tied=lambda pairs: sorted(pairs)[0]):
    words = [(list(word.encode()), count) for word, count in counts.items()]
    merges = []
    while len(merges) < n and (pairs := pairs_of(words)):
        top = max(pairs.values())
        best = tied([pair for pair in pairs if pairs[pair] == top])
        words = [(replaced(ids, best, 256 + len(merges)), count) for ids, count in words]
        merges.append(best)
    return merges


def encoded(text, merges):
    ids = list(text.encode())
    for new, pair in enumerate(merges, 256):
        ids = replaced(ids, pair, new)
    return ids


def spelled(ids, merges):
    table = [bytes([i]) for i in range(256)]
    for a, b in merges:
        table.append(table[a] + table[b])
    return b"".join(table[i] for i in ids)


def vocabulary(rng, alphabet="abcd", size=12, high=9):
    words = ("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 7))) for _ in range(size))
    return {word: rng.randint(1, high) for word in words}


@check(
    "a pair counts as often as its word occurs",
    holds=["the most frequent pair of neighbours", "A pair counts as often as its word occurs"],
)
def weighted(answer, rng, device):
    counts = {"ab": 1, "abx": 1, "aby": 1, "cd": rng.randint(10, 60)}
    expect_equal(answer.train(counts, 1), [(99, 100)], name="train(...)", hint=WEIGHT)
    letters = rng.sample("abcdefghijkl", 8)
    words = ["".join(letters[i : i + 2]) for i in (0, 2, 4, 6)]
    counts = dict(zip(words, rng.sample(range(1, 40), 4)))
    expect_equal(answer.train(counts, 3), trained(counts, 3), name="train(...)", hint=WEIGHT)


@check(
    "pairs are counted again after each merge",
    holds=[
        "each word begins as the list of its UTF-8 bytes",
        "256 in the first round, 257 in the second",
        "list of at most n pairs of token numbers, in order",
        "entry i makes token 256 + i",
    ],
    both_sides=True,
)
def anew(answer, rng, device):
    a, b, c, d, x, y = rng.sample("abcdefghijkl", 6)
    counts = {a + b + c: 5, a + b + d: 4, x + y: 7}
    for n in (1, 4):
        expect_equal(answer.train(counts, n), trained(counts, n), name="train(...)", hint=ANEW)
    counts = {"ä" + x: 6, "ä" + y: 5}
    expect_equal(answer.train(counts, 3), trained(counts, 3), name="train(...)", hint=BYTES)


@check(
    "nothing is merged across words, and training ends when no pair is left",
    holds=["In each of at most `n` rounds", "No pair reaches from one word", "It ends early"],
    both_sides=True,
)
def ends(answer, rng, device):
    counts = {"ab": 3, "c": rng.randint(9, 20)}
    expect_equal(answer.train(counts, 10), [(97, 98)], name="train(...)", hint=APART)
    expect_equal(answer.train({"x": 2}, 3), [], name="train(...)", hint=APART)
    expect_equal(answer.train({}, 3), [], name="train({}, 3)", hint="No words, no pairs.")
    expect_equal(answer.train({"abc": 2}, 0), [], name="train(..., 0)", hint="No round, no pair.")


@check("of equal counts the smaller pair wins", holds="Of pairs with equal counts")
def ties(answer, rng, device):
    wanted = [(97, 98), (98, 97), (122, 121)]
    got = answer.train({"zy": 2, "ba": 2, "ab": 2}, 3)
    expect_equal(got, wanted, name="train(...)", hint=TIES)
    for _ in range(5):
        counts = vocabulary(rng)
        expect_equal(answer.train(counts, 6), trained(counts, 6), name="train(...)", hint=TIES)


@check(
    "runs of one token",
    holds=["In counting, `aaa` has two pairs", "In merging go from the left, and no token belongs"],
)
def runs(answer, rng, device):
    for counts in ({"aaa": 3, "bc": 5}, {"aaaa": 5, "aaa": 3, "b": 2}, {"xaaaaay": 2}):
        expect_equal(answer.train(counts, 3), trained(counts, 3), name="train(...)", hint=RUNS)
    merges = [(97, 97), (256, 256)]
    for n in range(1, 12):
        got = answer.encode("a" * n, merges)
        expect_equal(got, encoded("a" * n, merges), name=f"encode('{'a' * n}', ...)", hint=RUNS)


@check(
    "the earliest merge goes first",
    holds=["Again and again it merges the pair that stands earliest", "list of token numbers."],
)
def order(answer, rng, device):
    got = answer.encode("abc", [(98, 99), (97, 98)])
    expect_equal(got, [97, 256], name="encode('abc', ...)", hint=RANK)
    got = answer.encode("abcd", [(97, 98), (98, 99), (257, 100)])
    expect_equal(got, [256, 99, 100], name="encode('abcd', ...)", hint=RANK)
    for _ in range(12):
        merges = trained(vocabulary(rng, "abc", 14), 12)
        text = "".join(rng.choice("abc") for _ in range(rng.randint(2, 12)))
        got = answer.encode(text, merges)
        expect_equal(got, encoded(text, merges), name=f"encode('{text}', ...)", hint=RANK)


@check(
    "any text goes in and comes back",
    holds=["splits any text into token numbers", "It starts from the UTF-8 bytes"],
    both_sides=True,
)
def everything(answer, rng, device):
    merges = trained(vocabulary(rng, "äöü€", 8), 8)
    for text in ("", "x", "naïve €5", "\u4f60\u597d", "\U0001f600\u0000", "äöü€" * 3, " a\n\n"):
        ids = answer.encode(text, merges)
        expect_equal(ids, encoded(text, merges), name=f"encode({text!a}, ...)", hint=BYTES)
        expect_true(spelled(ids, merges) == text.encode(), "bytes were lost", hint=BYTES)
        bare = answer.encode(text, [])
        expect_equal(bare, list(text.encode()), name=f"encode({text!a}, [])", hint=BYTES)


@check("the arguments stay", holds="The arguments stay as they were")
def untouched(answer, rng, device):
    counts, merges = vocabulary(rng), [(97, 98), (256, 99)]
    kept = list(counts.items())
    answer.train(counts, 5)
    answer.encode("abcabc", merges)
    expect_true(list(counts.items()) == kept, "train changed counts", hint="Work on copies.")
    expect_true(merges == [(97, 98), (256, 99)], "encode changed merges", hint="Work on copies.")


@mutant("each word counts once", caught_by=weighted)
def train(counts, n):
    return trained(dict.fromkeys(counts, 1), n)


@mutant("counts the pairs once, at the start", caught_by=anew)
def train(counts, n):
    pairs = pairs_of([(list(word.encode()), count) for word, count in counts.items()])
    return sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:n]


@mutant("numbers new tokens from 255", caught_by=anew)
def train(counts, n):
    return [tuple(t - (t > 255) for t in pair) for pair in trained(counts, n)]


@mutant("goes over all words as one text", caught_by=ends)
def train(counts, n):
    return trained({"".join(word * count for word, count in counts.items()): 1}, n)


@mutant("takes the first of equal counts", caught_by=ties)
def train(counts, n):
    return trained(counts, n, tied=lambda pairs: pairs[0])


@mutant("takes the larger of equal counts", caught_by=ties)
def train(counts, n):
    return trained(counts, n, tied=max)


@mutant("counts aaa as one pair", caught_by=runs)
def train(counts, n):
    words, merges = [(list(word.encode()), c) for word, c in counts.items()], []
    for new in range(256, 256 + n):
        pairs = Counter()
        for ids, c in words:
            for pair in set(itertools.pairwise(ids)):
                pairs[pair] += c * replaced(ids, pair, -1).count(-1)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = [(replaced(ids, best, new), c) for ids, c in words]
    return merges


@mutant("merges overlapping pairs", caught_by=runs)
def encode(text, merges):
    ids = list(text.encode())
    for new, pair in enumerate(merges, 256):
        hit = [found == pair for found in itertools.pairwise(ids)] + [False]
        ids = [
            new if here else token
            for i, (token, here) in enumerate(zip(ids, hit))
            if here or not (i and hit[i - 1])
        ]
    return ids


@mutant("takes the longest token that fits", caught_by=order)
def encode(text, merges):
    names = [bytes([i]) for i in range(256)]
    for a, b in merges:
        names.append(names[a] + names[b])
    table = {name: i for i, name in reversed(list(enumerate(names)))}
    data, out = text.encode(), []
    while data:
        size = max(k for k in range(1, len(data) + 1) if data[:k] in table)
        out.append(table[data[:size]])
        data = data[size:]
    return out


@mutant("merges the leftmost pair that it knows", caught_by=order)
def encode(text, merges):
    rank = {pair: 256 + i for i, pair in enumerate(merges)}
    ids, i = list(text.encode()), 0
    while i < len(ids) - 1:
        pair = (ids[i], ids[i + 1])
        if pair in rank:
            ids[i : i + 2] = [rank[pair]]
            i = 0
        else:
            i += 1
    return ids


@mutant("code points in place of bytes", caught_by=everything)
def encode(text, merges):
    ids = [ord(c) for c in text]
    for new, pair in enumerate(merges, 256):
        ids = replaced(ids, pair, new)
    return ids


@mutant("empties the list of merges", caught_by=untouched)
def encode(text, merges):
    ids, new = list(text.encode()), 256
    while merges:
        ids = replaced(ids, merges.pop(0), new)
        new += 1
    return ids


@accepted("applies every merge, one after the other")
def encode(text, merges):
    ids = tuple(text.encode())
    for new, pair in enumerate(merges, 256):
        out, i = [], 0
        while i < len(ids):
            if ids[i : i + 2] == tuple(pair):
                out.append(new)
                i += 2
            else:
                out.append(ids[i])
                i += 1
        ids = tuple(out)
    return list(ids)


@accepted("strings of one character a token")
def train(counts, n):
    words = {word: word.encode().decode("latin-1") for word in counts}
    merges = []
    for new in range(256, 256 + n):
        pairs = {}
        for word, text in words.items():
            for a, b in itertools.pairwise(text):
                pairs[a, b] = pairs.get((a, b), 0) + counts[word]
        if not pairs:
            return merges
        a, b = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0][0]
        merges.append((ord(a), ord(b)))
        words = {word: text.replace(a + b, chr(new)) for word, text in words.items()}
    return merges


@hinted(1, reaches=anew)
def train(counts, n):
    words = {word: list(word.encode()) for word in counts}
    merges = []
    for new in range(256, 256 + n):
        pairs = Counter()
        for word, ids in words.items():
            for pair in itertools.pairwise(ids):
                pairs[pair] += counts[word]
        best = pairs.most_common(1)[0][0]
        merges.append(best)
        words = {word: replaced(ids, best, new) for word, ids in words.items()}
    return merges
