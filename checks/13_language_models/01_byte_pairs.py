"""Judges lessons/13_language_models/01_byte_pairs.md."""

import itertools
from collections import Counter

from tensortutor.checking import (
    accepted,
    advising,
    check,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

WEIGHT = "A word that occurs 50 times gives each of its pairs 50 counts."
ANEW = "After each merge the pairs are others: count them again in every round."
APART = "Words are apart: no pair reaches from one into the next, and a single token has none."
RUNS = "aaaaa is aa aa a: a token belongs to one pair, counted from the left."
TIES = "Of equal counts the smaller tuple comes first: then two machines have the same tokens."
RANK = "The pair that stands earliest in merges goes first, wherever it is in the text."
BYTES = "Start from the bytes of UTF-8: each is a token, 0 to 255."
LEFT = "Which round finds no pair? Go on until then: a pair that occurs once is a pair too."
AS_IT_IS = "The word is taken as it stands: capitals, blanks and line breaks are bytes like others."


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


def same_pairs(answer, counts, n, hint):
    """The answer gets a copy, so that one that changes it is told so, and nothing else."""
    got = answer.train(dict(counts), n)
    expect_equal(got, trained(counts, n), name=f"train({counts}, {n})", hint=hint)


def same_tokens(answer, text, merges, hint):
    got = answer.encode(text, list(merges))
    expect_equal(got, encoded(text, merges), name=f"encode({text!a}, ...)", hint=hint)


@check("words are apart", holds="No pair reaches from one word")
def apart(answer, rng, device):
    same_pairs(answer, {"ab": 3, "c": rng.randint(9, 20)}, 1, APART)
    same_pairs(answer, {"ba": rng.randint(9, 12), "cd": rng.randint(3, 6)}, 2, APART)


@check(
    "a pair counts as often as its word occurs",
    holds=["the most frequent pair of neighbours", "A pair counts as often as its word occurs"],
)
def weighted(answer, rng, device):
    same_pairs(answer, {"ab": 1, "abx": 1, "aby": 1, "cd": rng.randint(10, 60)}, 1, WEIGHT)
    letters = rng.sample("abcdefghijkl", 8)
    words = ["".join(letters[i : i + 2]) for i in (0, 2, 4, 6)]
    same_pairs(answer, dict(zip(words, rng.sample(range(1, 40), 4))), 3, WEIGHT)


@check(
    "pairs are counted again after each merge",
    holds=[
        "each word begins as the list of its UTF-8 bytes",
        "256 in the first round, 257 in the second",
        "a list of at most n tuples, each a pair of token numbers, in order",
        "entry i makes token 256 + i",
    ],
    both_sides=True,
)
def anew(answer, rng, device):
    a, b, c, d, x, y = rng.sample("abcdefghijkl", 6)
    counts = {a + b + c: 5, a + b + d: 4, x + y: 7}
    for n in (1, 4):
        same_pairs(answer, counts, n, ANEW)
    same_pairs(answer, {"ä" + x: 6, "ä" + y: 5}, 3, BYTES)
    upper = a.upper() + b.upper()
    same_pairs(answer, {upper: 5, " " + a: 9, a + "\n": 7, a + b: 3}, 4, AS_IT_IS)


@check(
    "training ends when no pair is left",
    holds=["In each of at most `n` rounds", "It ends early if no pair is left"],
    both_sides=True,
)
def ends(answer, rng, device):
    with advising((ValueError, IndexError), hint="No pair is left: return what there is."):
        same_pairs(answer, {"ab": 3, "c": rng.randint(9, 20)}, 10, LEFT)
        same_pairs(answer, {"x": 2}, 3, APART)
    same_pairs(answer, {"abc": 1, "de": 2}, 9, LEFT)
    same_pairs(answer, {}, 3, "No words, no pairs.")
    same_pairs(answer, {"abc": 2}, 0, "No round, no pair.")


@check(
    "runs of one token",
    holds=["In counting, `aaa` has two pairs", "In merging go from the left, and no token belongs"],
)
def runs(answer, rng, device):
    # no two counts are equal here: ties have a check of their own
    for counts in ({"aaa": 3, "bc": 5}, {"aaaa": 5, "aaa": 3, "b": 2}, {"aaaaa": 5, "aaaa": 2}):
        same_pairs(answer, counts, 3, RUNS)
    for n in range(1, 12):
        same_tokens(answer, "a" * n, [(97, 97), (256, 256)], RUNS)


@check("of equal counts the smaller pair wins", holds="Of pairs with equal counts")
def ties(answer, rng, device):
    same_pairs(answer, {"zy": 2, "ba": 2, "ab": 2}, 3, TIES)
    for _ in range(5):
        same_pairs(answer, vocabulary(rng), 6, TIES)


@check(
    "the earliest merge goes first",
    holds=["Again and again it merges the pair that stands earliest", "list of token numbers."],
)
def order(answer, rng, device):
    same_tokens(answer, "abc", [(98, 99), (97, 98)], RANK)
    same_tokens(answer, "abcd", [(97, 98), (98, 99), (257, 100)], RANK)
    hint = "Two entries may spell the same text. The pair decides the number, not the spelling."
    same_tokens(answer, "abc", [(98, 99), (97, 98), (257, 99), (97, 256)], hint)
    for _ in range(12):
        merges = trained(vocabulary(rng, "abc", 14), 12)
        text = "".join(rng.choice("abc") for _ in range(rng.randint(2, 12)))
        same_tokens(answer, text, merges, RANK)


@check(
    "any text goes in and comes back",
    holds=[
        "splits any text into token numbers",
        "It starts from the UTF-8 bytes",
        "wherever it is in the text",
    ],
    both_sides=True,
)
def everything(answer, rng, device):
    merges = trained(vocabulary(rng, "äöü€", 8), 8)
    for text in ("", "x", "naïve €5", "\u4f60\u597d", "\U0001f600\u0000", "äöü€" * 3, " a\n\n"):
        same_tokens(answer, text, merges, BYTES)
        ids = answer.encode(text, list(merges))
        expect_true(spelled(ids, merges) == text.encode(), "bytes were lost", hint=BYTES)
        same_tokens(answer, text, [], BYTES)
    merges = [(ord(b), ord(a)) for a, b in ("a ", "b\n", "BA")] + [(97, 32)]
    same_tokens(answer, "a b a\nb ABab Ab", merges, AS_IT_IS)


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


@mutant("goes over all words as one text", caught_by=apart)
def train(counts, n):
    return trained({"".join(word * count for word, count in counts.items()): 1}, n)


@mutant("goes on without a pair", caught_by=ends)
def train(counts, n):
    merges = trained(counts, n)
    return merges + merges[-1:] * (n - len(merges))


@mutant("drops pairs that occur once", caught_by=ends)
def train(counts, n):
    words, merges = [(list(word.encode()), c) for word, c in counts.items()], []
    while len(merges) < n and (pairs := pairs_of(words)) and max(pairs.values()) > 1:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        words = [(replaced(ids, best, 256 + len(merges)), c) for ids, c in words]
        merges.append(best)
    return merges


@mutant("lowers and strips the words", caught_by=anew)
def train(counts, n):
    clean = Counter()
    for word, count in counts.items():
        clean[word.strip().lower()] += count
    return trained(clean, n)


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


@mutant("takes the first number that spells the same", caught_by=order)
def encode(text, merges):
    names = [bytes([i]) for i in range(256)]
    for a, b in merges:
        names.append(names[a] + names[b])
    return [names.index(names[token]) for token in encoded(text, merges)]


@mutant("merges the last pair first", caught_by=order)
def encode(text, merges):
    rank = {pair: 256 + i for i, pair in enumerate(merges)}
    ids = list(text.encode())
    while any(pair in rank for pair in itertools.pairwise(ids)):
        best = max(itertools.pairwise(ids), key=lambda pair: rank.get(pair, -1))
        ids = replaced(ids, best, rank[best])
    return ids


@mutant("cuts the text at blanks", caught_by=everything)
def encode(text, merges):
    words = text.split(" ")
    ids = encoded(words[0], merges)
    for word in words[1:]:
        ids += [32, *encoded(word, merges)]
    return ids


@mutant("lowers the text", caught_by=everything)
def encode(text, merges):
    return encoded(text.lower(), merges)


@mutant("merges from the right", caught_by=runs)
def encode(text, merges):
    ids = list(text.encode())[::-1]
    for new, (a, b) in enumerate(merges, 256):
        ids = replaced(ids, (b, a), new)
    return ids[::-1]


@mutant("code points in place of bytes", caught_by=everything)
def encode(text, merges):
    ids = [ord(c) for c in text]
    for new, pair in enumerate(merges, 256):
        ids = replaced(ids, pair, new)
    return ids


@mutant("empties the counts", caught_by=untouched)
def train(counts, n):
    merges = trained(counts, n)
    counts.clear()
    return merges


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


@accepted("one place at a time, the least rank and then the leftmost")
def encode(text, merges):
    ids = list(text.encode())
    while len(ids) > 1:
        known = [
            (merges.index(pair), at)
            for at, pair in enumerate(itertools.pairwise(ids))
            if pair in merges
        ]
        if not known:
            break
        rank, at = min(known)
        ids[at : at + 2] = [256 + rank]
    return ids


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
