# says = "The standard library finds what it needs of the system."
import getpass
import os
import sqlite3
import time
import zoneinfo

print(sqlite3.connect("data.db").execute("select 1 + 1").fetchone())
print(os.cpu_count(), len(os.sched_getaffinity(0)), time.tzname)
print(getpass.getuser(), os.getuid(), zoneinfo.ZoneInfo("Europe/Berlin"))
