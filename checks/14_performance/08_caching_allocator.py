"""Judges lessons/14_performance/08_caching_allocator.md."""

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "You have a log of what a run allocated and freed",
    "Freeing is done; two functions are missing.",
    "Write malloc(segments, name, size).",
    "Write empty_cache(segments).",
    "(PyTorch compares addresses here",
)

equivalent(
    'if have - size > (MiB if pool == "large" else 0):',
    'if have - size > (MiB if pool == "large" else 1):',
    because="both sizes are multiples of 512",
)

KIB, MIB = 2**10, 2**20

ROUND = "A size becomes a multiple of 512 bytes before anything else is done with it."
SEGMENT = "The driver gives whole segments: segment_size of the rounded size."
FILL = "The blocks of a segment fill it: what is not a tensor's is a free block, or stays with it."
FOUND = (
    "A free block of this pool is large enough: nothing is asked of the driver, and 0 is returned. "
    "One of exactly the size is large enough too."
)
NONE_FITS = (
    "No free block of this pool is large enough. The other pool's do not count, and neither do two "
    "blocks together."
)
LAST = "A new segment comes last. The others stay where they are, and none is given back here."
SPLIT = "What the tensor does not need becomes a free block of its own, right behind it."
ZERO = f"{SPLIT} A rest of 512 bytes is one, a rest of 0 bytes is none."
REST = "In the large pool a rest of 1 MiB or less is not split off: the tensor's block keeps it."
AGAIN = "The freed block is taken again, with the name of the new tensor."
BEST = "Of the free blocks that are large enough the smallest is taken."
EQUAL = "Of free blocks of one size, take that of the oldest segment, and there the first."
POOLS = "Small tensors take blocks from small segments alone, large tensors from large ones."
POOL = "The rounded size decides: up to 1 MiB, with 1 MiB itself, the pool is small."
EMPTY = "A segment goes back to the driver if no block in it has a name."
GIVEN = "empty_cache returns the bytes of the segments that it takes out, not of other free blocks."
STAY = "The segments that stay keep their order, and their blocks."
PLACE = "The list that was passed is changed itself: append to it, or assign to segments[:]."
SINGLE = "A call of malloc makes one segment at most. A rest is a block of the same segment."


def device_bytes(size):
    if size <= MIB:
        return 2 * MIB
    return 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB


def place(
    segments,
    name,
    size,
    *,
    quantum=512,
    small_is=lambda size: size <= MIB,
    pools=True,
    cache=True,
    best=min,
    small_rest=0,
    large_rest=MIB,
    behind=True,
    front=False,
    driver=device_bytes,
):
    """Like malloc of the task; a keyword makes one rule wrong."""
    size = -(-size // quantum) * quantum
    pool, asked = "small" if small_is(size) else "large", 0
    fits = [
        (block, s, i)
        for s, (kind, blocks) in enumerate(segments)
        for i, (block, owner) in enumerate(blocks)
        if owner is None and block >= size and (kind == pool or not pools)
    ]
    if not fits or not cache:
        asked = driver(size)
        at = 0 if front else len(segments)
        segments.insert(at, [pool, [[asked, None]]])
        fits = [(asked, at, 0)]
    have, s, i = best(fits)
    parts = [[have, name]]
    if have - size > (small_rest if segments[s][0] == "small" else large_rest):
        parts = [[size, name], [have - size, None]][:: 1 if behind else -1]
    segments[s][1][i : i + 1] = parts
    return asked


def release(segments, name):
    """Free a name, and merge free neighbours."""
    for _, blocks in segments:
        merged = []
        for size, owner in blocks:
            owner = None if owner == name else owner
            if merged and merged[-1][1] is None and owner is None:
                merged[-1][0] += size
            else:
                merged.append([size, owner])
        blocks[:] = merged


def clear(segments, given=lambda owners: all(owner is None for owner in owners)):
    whole = [s for s in segments if given([owner for _, owner in s[1]])]
    segments[:] = [s for s in segments if not any(s is w for w in whole)]
    return sum(size for _, blocks in whole for size, _ in blocks)


def text(event):
    return event if isinstance(event, str) else f"{event[0]}={event[1]:,} bytes"


def layout(segments):
    """Copies that can be compared. A free block has the name "free"."""
    blocks = [[[b[0], "free" if b[1] is None else b[1]] for b in s[1]] for s in segments]
    return [[s[0], of_one] for s, of_one in zip(segments, blocks, strict=True)]


def compare(answer, events, hint):
    """Play a log: (name, bytes) allocates, "-name" frees, "empty" empties the cache."""
    mine, right = [], []
    for k, event in enumerate(events):
        what = " after " + ", ".join(map(text, events[max(0, k - 7) : k + 1]))
        if event == "empty":
            compare_emptying(answer, mine, right, what)
        elif event[0] == "-":
            release(mine, event[1:])
            release(right, event[1:])
        else:
            got, wanted = answer.malloc(mine, *event), place(right, *event)
            why = FOUND if wanted == 0 else NONE_FITS if got == 0 else SEGMENT
            expect_equal(got, wanted, name="what malloc returns" + what, hint=why)
            seen, wanted = layout(mine), layout(right)
            pools = [s[0] for s in seen]
            expect_equal(pools, [s[0] for s in wanted], name="the list of pools" + what, hint=LAST)
            if seen != wanted:
                moved = sorted(map(str, seen)) == sorted(map(str, wanted))
                name = "the list of segments" + what
                expect_equal(
                    seen, wanted, name=name, hint=LAST if moved and hint != EQUAL else hint
                )
    return mine, right


def compare_emptying(answer, mine, right, what):
    before = layout(mine)
    got, wanted = answer.empty_cache(mine), clear(right)
    seen, left = layout(mine), layout(right)
    if seen != left:
        why = EMPTY
        if seen == before:
            why = f"{EMPTY} {PLACE}"
        elif sorted(map(str, seen)) == sorted(map(str, left)):
            why = STAY
        elif len(before) > len(seen) > len(left):
            why = (
                f"{EMPTY} All such segments do, of both pools. Removing from a list while a loop "
                "goes through it skips the next one."
            )
        pools = [s[0] for s in left]
        expect_equal([s[0] for s in seen], pools, name="the list of pools" + what, hint=why)
        expect_equal(seen, left, name="the list of segments" + what, hint=why)
    expect_equal(got, wanted, name="what empty_cache returns" + what, hint=GIVEN)


@check(
    "sizes are rounded to 512 bytes",
    hint="A segment is [pool, blocks], and a block is [size, name].",
    holds=[
        "The size is rounded up to whole 512 bytes first.",
        'A segment is [pool, blocks], where pool is "small" or "large".',
        "A block is [size, name], and the name is None where it is free.",
    ],
    both_sides=True,
)
def rounding(answer, rng, device):
    for size in (1, 511, 512, 513, rng.randint(1025, 90_000), MIB - 1):
        segments = []
        answer.malloc(segments, "x", size)
        expect_true(len(segments) > 0, "a first tensor makes no segment", hint=PLACE)
        expect_true(len(segments) == 1, "a first tensor makes several segments", hint=SINGLE)
        right = -(-size // 512) * 512
        for block, owner in segments[0][1]:
            # A tensor in a whole segment, or in none, is told by other checks.
            if owner == "x" and block < 2 * MIB:
                expect_equal(block, right, name=f"the block for {size:,} bytes", hint=ROUND)


@check(
    "a first tensor takes a segment",
    holds=[
        "Up to 1 MiB the pool is small, above it is large.",
        "If there is no such block, a segment of segment_size bytes comes last in the list.",
    ],
    both_sides=True,
)
def first(answer, rng, device):
    edges = [4, MIB - 511, MIB, MIB + 1, 3 * MIB, 10 * MIB - 512, 10 * MIB - 511, 10 * MIB]
    for size in [*edges, 13 * MIB, rng.randint(20, 90) * MIB]:
        segments = []
        got = answer.malloc(segments, "x", size)
        right = device_bytes(-(-size // 512) * 512)
        pool = "small" if size <= MIB else "large"
        expect_equal(segments[0][0], pool, name=f"the pool for {size:,} bytes", hint=POOL)
        expect_equal(got, right, name=f"what malloc returns for {size:,} bytes", hint=SEGMENT)
        total = sum(block[0] for block in segments[0][1])
        name = f"the blocks of the segment for {size:,} bytes together"
        expect_equal(total, right, name=name, hint=FILL)


@check(
    "a rest is split off, and used",
    holds="A rest is split off behind the tensor: in the small pool any, in the large pool one of",
    side="a rest that is split off",
)
def splitting(answer, rng, device):
    compare(answer, [("x", rng.randint(1, 100 * KIB))], SPLIT)
    compare(answer, [(f"t{k}", rng.randint(1, 100 * KIB)) for k in range(9)], SPLIT)
    compare(answer, [("a", MIB), ("b", MIB - 512), ("c", 512), ("d", 1)], ZERO)
    five = [(n, 4 * MIB) for n in "abcde"]
    compare(answer, [*five, "-b", ("x", 2 * MIB)], SPLIT)
    compare(answer, [("a", 6 * MIB), ("b", 7 * MIB), ("c", 5 * MIB), ("d", 3 * MIB)], SPLIT)
    compare(answer, [("a", 30 * MIB), "-a", ("b", 14 * MIB), ("c", 16 * MIB)], SPLIT)


@check(
    "a small rest of a large block is not split off",
    holds=[
        "A rest is split off behind the tensor: in the small pool any, in the large pool one of",
        "Another rest stays in the tensor's block.",
    ],
    side="a rest that stays",
)
def staying(answer, rng, device):
    compare(answer, [("x", 11 * MIB)], REST)
    compare(answer, [("x", 11 * MIB - 511)], REST)
    compare(answer, [("x", 11 * MIB - 512)], REST)
    compare(answer, [("x", (2 * rng.randint(6, 30) - 1) * MIB + rng.randint(1, MIB))], REST)
    compare(answer, [("a", 9 * MIB), ("b", 10 * MIB - 512), ("c", 2 * MIB)], REST)
    compare(answer, [("a", 20 * MIB), "-a", ("b", 19 * MIB), "-b", ("c", 19 * MIB - 1024)], REST)


@check(
    "freed blocks are used again",
    holds="Return the bytes that the driver was asked for, or 0.",
    both_sides=True,
)
def reuse(answer, rng, device):
    size = rng.choice([rng.randint(1, MIB), rng.randint(2, 40) * MIB])
    compare(answer, [("x", size), "-x"] * 3, AGAIN)
    compare(answer, [("x", size), "-x", ("y", 3), ("z", 3 * MIB)], AGAIN)


@check(
    "the two pools are apart",
    holds="Up to 1 MiB the pool is small, above it is large.",
    both_sides=True,
)
def apart(answer, rng, device):
    small, large = rng.randint(1, MIB), rng.randint(2, 9) * MIB
    compare(answer, [("a", large), "-a", ("b", small)], POOLS)
    compare(answer, [("a", large), ("b", MIB), ("c", MIB + 1)], POOLS)
    compare(answer, [("a", MIB), ("b", MIB), "-a", "-b", ("c", MIB + 1), ("d", MIB - 1)], POOLS)


@check(
    "the smallest block that fits is taken",
    holds=[
        "The block is the smallest free one of the pool that is large enough",
        "of equals the one in the oldest segment, and there the first",
    ],
)
def smallest(answer, rng, device):
    sizes = rng.sample(range(12, 60, 2), 3)
    freed = [f"-{n}" for n in rng.sample("abc", 3)]
    events = [*((n, size * MIB) for n, size in zip("abc", sizes)), *freed]
    low, middle, high = sorted(sizes)
    compare(answer, [*events, ("x", low * MIB)], BEST)
    compare(answer, [*events, ("x", middle * MIB), ("y", low * MIB), ("z", high * MIB)], BEST)
    five = [(n, 4 * MIB) for n in "abcde"]
    compare(answer, [*five, ("f", 9 * MIB), "-d", ("x", 2 * MIB), "-a", ("y", 3 * MIB)], BEST)
    compare(answer, [("a", 12 * MIB), ("b", 12 * MIB), "-b", "-a", ("x", 12 * MIB)], EQUAL)
    compare(answer, [*five, "-d", "-b", ("x", 4 * MIB)], EQUAL)


@check(
    "emptying gives back what is free as a whole",
    holds="It takes out the segments that are free as a whole, and returns their bytes.",
)
def emptied(answer, rng, device):
    size = rng.randint(1, 40) * MIB
    compare(answer, [("a", size), "-a", "empty", ("b", size)], SPLIT)
    six = [(n, 4 * MIB) for n in "abcdef"]
    events = [*six, "-a", "-c", "-d", "-f", "empty", "-b", "empty", ("x", 12 * MIB)]
    compare(answer, events, SPLIT)
    compare(answer, [("a", size), ("b", 100), "empty", "-a", "-b", "empty", "empty"], SPLIT)
    compare(answer, [("a", size), ("b", 100), "-b", "empty", "-a", "empty"], SPLIT)
    twins = [("a", 12 * MIB), ("b", 12 * MIB), ("c", 12 * MIB), "-a", "-c", "empty"]
    compare(answer, twins, SPLIT)
    compare(answer, ["empty"], SPLIT)


@check(
    "a long log, and the list stays the same list",
    holds="Both functions change the list of segments in place.",
    both_sides=True,
)
def long_log(answer, rng, device):
    events, live = [], []
    for k in range(150):
        kind = rng.random()
        if kind < 0.03:
            events.append("empty")
        elif live and kind < 0.48:
            events.append("-" + live.pop(rng.randrange(len(live))))
        else:
            sizes = [rng.randint(1, 3000), rng.randint(1, MIB), rng.randint(1, 30 * MIB)]
            live.append(f"t{k}")
            events.append((f"t{k}", rng.choice(sizes)))
    compare(answer, events, "Play the log by hand from the last event that was right.")
    segments = []
    answer.malloc(segments, "x", 3)
    expect_equal(len(segments), 1, name="the length of the list after malloc", hint=PLACE)
    release(segments, "x")
    answer.empty_cache(segments)
    expect_equal(len(segments), 0, name="the length of the list after empty_cache", hint=PLACE)


@mutant("asks the driver each time", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size, cache=False)


@mutant("rounds to 256 bytes", caught_by=rounding)
def malloc(segments, name, size):
    return place(segments, name, size, quantum=256)


@mutant("does not round", caught_by=rounding)
def malloc(segments, name, size):
    return place(segments, name, size, quantum=1)


@mutant("asks for the tensor alone", caught_by=first)
def malloc(segments, name, size):
    return place(segments, name, size, quantum=1, driver=lambda size: size)


@mutant("takes 1 MiB for large", caught_by=first)
def malloc(segments, name, size):
    return place(segments, name, size, small_is=lambda size: size < MIB)


@mutant("chooses the pool before it rounds", caught_by=first)
def malloc(segments, name, size):
    return place(segments, name, size, driver=lambda _: device_bytes(size))


@mutant("has one pool", caught_by=apart)
def malloc(segments, name, size):
    return place(segments, name, size, pools=False)


@mutant("puts a new segment in front", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size, front=True)


@mutant("takes the first block that fits", caught_by=smallest)
def malloc(segments, name, size):
    return place(segments, name, size, best=lambda fits: min(fits, key=lambda f: f[1:]))


@mutant("takes the largest block", caught_by=smallest)
def malloc(segments, name, size):
    return place(segments, name, size, best=max)


@mutant("takes the newest of equals", caught_by=smallest)
def malloc(segments, name, size):
    return place(segments, name, size, best=lambda fs: min(fs, key=lambda f: (f[0], -f[1], f[2])))


@mutant("takes the last of equals in a segment", caught_by=smallest)
def malloc(segments, name, size):
    return place(segments, name, size, best=lambda fs: min(fs, key=lambda f: (f[0], f[1], -f[2])))


@mutant("never splits", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size, small_rest=99 * MIB, large_rest=99 * MIB)


@mutant("splits off each rest", caught_by=staying)
def malloc(segments, name, size):
    return place(segments, name, size, large_rest=0)


@mutant("splits off a rest of 1 MiB", caught_by=staying)
def malloc(segments, name, size):
    return place(segments, name, size, large_rest=MIB - 512)


@mutant("keeps small rests in the small pool too", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size, small_rest=MIB)


@mutant("puts the rest in front", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size, behind=False)


@mutant("returns the size of the block", caught_by=first)
def malloc(segments, name, size):
    place(segments, name, size)
    return -(-size // 512) * 512


@mutant("returns the segment's size also if it was there", caught_by=splitting)
def malloc(segments, name, size):
    return place(segments, name, size) or device_bytes(size)


@mutant("rounds down", caught_by=rounding)
def malloc(segments, name, size):
    return place(segments, name, max(512, size // 512 * 512))


@mutant("adds 512 bytes to each size", caught_by=rounding)
def malloc(segments, name, size):
    return place(segments, name, (size // 512 + 1) * 512)


@mutant("asks for a segment by the size as it came", caught_by=first)
def malloc(segments, name, size):
    return place(segments, name, size, driver=lambda _: device_bytes(size))


@mutant("wants a block that is larger than the tensor", caught_by=splitting)
def malloc(segments, name, size):
    asked = place(segments, name, size + 512)
    for _, blocks in segments:
        for i, (block, owner) in enumerate(blocks):
            if owner == name and block > 512:
                blocks[i : i + 1] = [[block - 512, name], [512, None]]
    release(segments, "")
    return asked


@mutant("loses the rest", caught_by=first)
def malloc(segments, name, size):
    asked = place(segments, name, size)
    for _, blocks in segments:
        for i, (_, owner) in enumerate(blocks):
            if owner == name:
                blocks[i][0] = -(-size // 512) * 512
    return asked


@mutant("puts the rest at the end of the segment", caught_by=splitting)
def malloc(segments, name, size):
    asked = place(segments, name, size)
    for _, blocks in segments:
        if name in [owner for _, owner in blocks]:
            i = [owner for _, owner in blocks].index(name)
            if i + 1 < len(blocks) and blocks[i + 1][1] is None:
                blocks.append(blocks.pop(i + 1))
    return asked


@mutant("gives back free segments before it searches", caught_by=reuse)
def malloc(segments, name, size):
    clear(segments)
    return place(segments, name, size)


@mutant("works on a copy of the list", caught_by=rounding)
def malloc(segments, name, size):
    return place([[pool, [list(b) for b in blocks]] for pool, blocks in segments], name, size)


@mutant("removes from the list while it goes through it", caught_by=emptied)
def empty_cache(segments):
    total = 0
    for s in segments:
        if all(owner is None for _, owner in s[1]):
            total += sum(size for size, _ in s[1])
            segments.remove(s)
    return total


@mutant("turns the order of the others around", caught_by=emptied)
def empty_cache(segments):
    total = clear(segments)
    segments.reverse()
    return total


@mutant("counts the segments that it gives back", caught_by=emptied)
def empty_cache(segments):
    before = len(segments)
    clear(segments)
    return before - len(segments)


@mutant("asks the first block alone", caught_by=emptied)
def empty_cache(segments):
    return clear(segments, given=lambda owners: owners[0] is None)


@mutant("asks the last block alone", caught_by=emptied)
def empty_cache(segments):
    return clear(segments, given=lambda owners: owners[-1] is None)


@mutant("gives nothing back", caught_by=emptied)
def empty_cache(segments):
    return 0


@mutant("gives back all segments with a free block", caught_by=emptied)
def empty_cache(segments):
    return clear(segments, given=lambda owners: None in owners)


@mutant("gives back the first segment alone", caught_by=emptied)
def empty_cache(segments):
    for s in segments:
        if all(owner is None for _, owner in s[1]):
            segments.remove(s)
            return sum(size for size, _ in s[1])
    return 0


@mutant("returns all free bytes", caught_by=emptied)
def empty_cache(segments):
    total = sum(size for _, blocks in segments for size, owner in blocks if owner is None)
    clear(segments)
    return total


@mutant("makes a new list", caught_by=emptied)
def empty_cache(segments):
    return clear(list(segments))


@hinted(1, reaches=first)
def malloc(segments, name, size):
    size = -(-size // 512) * 512
    pool = "small" if size <= MIB else "large"
    segments.append([pool, [[device_bytes(size), None]]])
    return device_bytes(size)


@accepted("searches with loops, and cuts the block in place")
def malloc(segments, name, size):
    units = (size + 511) // 512
    pool = "small" if units <= 2048 else "large"
    best = None
    for kind, blocks in segments:
        for i in range(len(blocks)):
            bytes_, owner = blocks[i]
            if kind != pool or owner is not None or bytes_ < 512 * units:
                continue
            if best is None or bytes_ < best[0][best[1]][0]:
                best = blocks, i
    asked = 0
    if best is None:
        asked = device_bytes(512 * units)
        segments.append([pool, [[asked, None]]])
        best = segments[-1][1], 0
    blocks, i = best
    block = blocks[i]
    block[1] = name
    left = block[0] - 512 * units
    if (pool == "small" and left) or left > MIB:
        block[0] -= left
        blocks.insert(i + 1, [left, None])
    return asked


@accepted("calls itself after it has asked the driver, and makes tuples")
def malloc(segments, name, size):
    size = size + -size % 512
    small = size <= 2**20
    fits = [
        (b[0], n, i, s)
        for n, s in enumerate(segments)
        if (s[0] == "small") == small
        for i, b in enumerate(s[1])
        if b[1] is None and size <= b[0]
    ]
    if not fits:
        segments += [("small" if small else "large", [(device_bytes(size), None)])]
        malloc(segments, name, size)
        return device_bytes(size)
    have, _, i, s = min(fits, key=lambda fit: fit[:3])
    cut = size if have - size >= (512 if small else MIB + 512) else have
    s[1][i] = (cut, name)
    if cut < have:
        s[1].insert(i + 1, (have - cut, None))
    return 0


@accepted("removes from the end")
def empty_cache(segments):
    given = 0
    for i in reversed(range(len(segments))):
        if not [b for b in segments[i][1] if b[1] is not None]:
            given += sum(b[0] for b in segments.pop(i)[1])
    return given
