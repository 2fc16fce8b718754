# says = "asyncio runs, with its own handlers and its own child processes."
import asyncio
import sys


async def count(name, steps):
    for step in range(steps):
        await asyncio.sleep(0)
        print(name, step)
    return steps


async def main():
    print(await asyncio.gather(count("a", 3), count("b", 2)))
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print('child')", stdout=asyncio.subprocess.PIPE
    )
    print(await child.communicate())


asyncio.run(main())
