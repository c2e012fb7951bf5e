//! The environment of commands: variables, users, time zones, a database.

use eyot::{ExecOptions, LogQuery, StartOptions};

use crate::transcript::{Agent, Check, text_of};

const SHOW_OWN: &str = "\
pwd
echo \"$GREETING|$PATH|${EMPTY-unset}\"
python3 -c 'import os; print(repr(os.environ[\"GREETING\"]))'";
const SHOW_TEXT: &str = "\
locale charmap
python3 -c 'import sys; print(sys.getfilesystemencoding(), sys.stdout.encoding)'";

/// Notes the whole environment, and that changes do not last.
pub async fn see_the_environment(agent: &mut Agent<'_>) -> Check {
    agent.run("env | grep -v '^_=' | grep -v ^SHLVL= | sort").await?;
    agent.run("cd /tmp && export STICKS=yes && umask 077; pwd").await?;
    agent.run("echo \"$PWD ${STICKS-unset} $(umask)\"; echo $0 $#; ulimit -c").await?;
    let env = [("GREETING", "hé ll=o\n!"), ("PATH", "/mine:/usr/bin:/bin"), ("EMPTY", "")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let cwd = Some("/usr".to_owned());
    agent.run_with(SHOW_OWN, ExecOptions { env, cwd, ..ExecOptions::default() }).await?;
    agent.run(SHOW_TEXT).await?;
    let started = agent.sandbox.start("echo $HOME $PWD $LANG $TZ $USER", StartOptions::default()).await?;
    agent.sandbox.wait(started.id).await?;
    let log = agent.sandbox.logs(started.id, LogQuery::default()).await?;
    agent.note(text_of(log).await?.trim_end());
    agent
        .run_all(&[
            "test \"$(hostname)\" = \"$(cat /etc/hostname)\" && getent hosts localhost | cut -d' ' -f1",
            "grep --count : /proc/net/dev; getent hosts example.com",
            "curl --silent --max-time 5 http://192.0.2.1/",
            "nproc | grep --count '^[1-9]'",
        ])
        .await
}

const SUMMER_TIME: &str = "\
from datetime import datetime
from zoneinfo import ZoneInfo
night = datetime(2026, 3, 29, 0, 30, tzinfo=ZoneInfo('UTC'))
for hour in range(3):
    print(night.replace(hour=hour).astimezone(ZoneInfo('Europe/Berlin')))
print(night.astimezone())
";

/// The time is UTC by default, and all time zones are installed.
pub async fn tell_the_time_of_a_place(agent: &mut Agent<'_>) -> Check {
    agent.run("date --date=@1767225600; TZ=Europe/Berlin date --date=@1751371200").await?;
    let env = [("TZ".to_owned(), "Asia/Kolkata".to_owned())].into();
    let line = "date --date=@0 '+%F %T %Z'; node -p 'new Date(0).toString()'";
    agent.run_with(line, ExecOptions { env, ..ExecOptions::default() }).await?;
    agent.run_reading("python3 -", SUMMER_TIME).await?;
    agent.run("touch --date=2026-02-03T04:05:06Z f && stat --format=%y f").await?;
    let age = "test $(($(date +%s) - $(stat --format=%Y .))) -lt 3600 && echo the clock runs";
    agent.run(age).await
}

const DATABASE: &str = "\
import sqlite3, sys, threading
path = 'shop.db'
db = sqlite3.connect(path)
print(db.execute('pragma journal_mode=wal').fetchone())
db.execute('create table tea (id integer primary key, name text unique, grams integer check (grams > 0))')
with db:
    db.executemany('insert into tea (name, grams) values (?, ?)', [(f'tea {n} ü', n + 1) for n in range(1000)])
try:
    with db:
        db.execute('delete from tea')
        db.execute('insert into tea (name, grams) values (?, ?)', ('bad', 0))
except sqlite3.IntegrityError as error:
    print(error)
print(db.execute('select count(*), sum(grams) from tea').fetchone())

def add(worker):
    own = sqlite3.connect(path, timeout=60)
    for n in range(25):
        with own:
            own.execute('update tea set grams = grams + 1 where id = 1')
    own.close()

threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(db.execute('select grams from tea where id = 1').fetchone())
print(db.execute('pragma integrity_check').fetchone())
";

const READ_BY_NODE: &str = "\
const { DatabaseSync } = require('node:sqlite');
console.log(new DatabaseSync('shop.db').prepare('select max(grams) as most from tea').get().most);
";
const READ_BY_PYTHON: &str = "\
import sqlite3
print(sqlite3.connect('shop.db').execute('select name from tea order by id desc').fetchone())
sqlite3.connect('/proc/shop.db').execute('create table tea (id)')
";

/// Eight writers at once, and readers in other processes.
pub async fn keep_data_in_sqlite(agent: &mut Agent<'_>) -> Check {
    agent.write("shop.py", DATABASE).await?;
    agent.run("python3 shop.py && ls shop.db*").await?;
    agent.run_reading("node --no-warnings -", READ_BY_NODE).await?;
    agent.run_reading("python3 - 2>&1 | grep -v '^  '", READ_BY_PYTHON).await
}
