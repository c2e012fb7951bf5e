//! Builds that agents do: C, Python, Node; and work with repositories.

use eyot::ExecOptions;

use crate::transcript::{Agent, Check};

const HEADER: &str = "#ifndef GREET_H\n#define GREET_H\nconst char *greeting(int formal);\n#endif\n";
const LIBRARY: &str =
    "#include \"greet.h\"\nconst char *greeting(int formal) { return formal ? \"Good day\" : \"Hi\"; }\n";
const PROGRAM: &str = r#"#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "greet.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s NUMBER\n", argv[0]);
        return 2;
    }
    printf("%s: %.3f\n", greeting(argc > 1), sqrt(atof(argv[1])));
    return 0;
}
"#;
const MAKEFILE: &str = "\
CFLAGS = -std=c11 -O2 -Wall -Werror -fPIC
root: main.o libgreet.so
\t$(CC) -o $@ main.o -L. -lgreet -lm -Wl,-rpath,'$$ORIGIN'
libgreet.so: greet.o
\t$(CC) -shared -o $@ greet.o
";

/// With a shared library, by make; first with a mistake.
pub async fn compile_a_c_program(agent: &mut Agent<'_>) -> Check {
    agent.write("app/greet.h", HEADER).await?;
    agent.write("app/greet.c", LIBRARY).await?;
    agent.write("app/Makefile", MAKEFILE).await?;
    agent.write("app/main.c", &PROGRAM.replace("atof(argv[1])", "missing")).await?;
    agent.run("make -C app 2>&1 | grep -o 'error: .*first use in this function'").await?;
    agent.write("app/main.c", PROGRAM).await?;
    let make = "make -C app --no-print-directory";
    agent
        .run_all(&[make, "app/root 2", "app/root", "rm app/libgreet.so; app/root 2", make, "app/root 144"])
        .await
}

const CODE: &str = "\
def slug(title):
    return '-'.join(title.lower().split())
";
const TESTS: &str = "\
import pytest
from shop.slugs import slug


@pytest.mark.parametrize('title', ['Blue Tea', '  blue   tea '])
def test_words_are_joined(title):
    assert slug(title) == 'blue-tea'


def test_punctuation_is_dropped():
    assert slug('Tea, blue!') == 'tea-blue'


def test_a_file_is_written(tmp_path):
    (tmp_path / 'ü.txt').write_text('ü')
    assert (tmp_path / 'ü.txt').read_bytes() == b'\\xc3\\xbc'
";
/// Without the time that it took, which is never the same.
const PYTEST: &str = "\
python3 -m pytest -p no:cacheprovider -q --tb=line 2>&1 | sed -E 's/ in [0-9.]+s//'
exit ${PIPESTATUS[0]}";
const MEND: &str = "\
sed -i 's/title.lower()/words(title.lower())/' shop/slugs.py
cat >> shop/slugs.py <<'END'


def words(text):
    return ''.join(letter for letter in text if letter.isalnum() or letter.isspace())
END
git diff --no-index --stat /dev/null shop/slugs.py | tail -1";

/// One test fails, and the code is fixed.
pub async fn run_pytest_mend_and_run_again(agent: &mut Agent<'_>) -> Check {
    agent.write("shop/__init__.py", "").await?;
    agent.write("shop/slugs.py", CODE).await?;
    agent.write("tests/test_slugs.py", TESTS).await?;
    agent.run_all(&[PYTEST, MEND, PYTEST]).await
}

const ROOT_PACKAGE: &str = r#"{
  "name": "shop", "private": true, "workspaces": ["packages/*"],
  "scripts": { "build": "node build.mjs", "pretest": "npm run build", "test": "node --test --test-reporter=tap" }
}
"#;
const PRICE_PACKAGE: &str =
    r#"{ "name": "@shop/price", "version": "1.2.0", "type": "module", "exports": "./index.js" }"#;
const PRICE: &str = "export const price = (cents) => `${(cents / 100).toFixed(2)} €`;\n";
const WEB_PACKAGE: &str = r#"{ "name": "@shop/web", "version": "0.1.0", "type": "module", "bin": { "label": "label.js" }, "dependencies": { "@shop/price": "^1.0.0" } }"#;
const LABEL: &str = "#!/usr/bin/env node\nimport { price } from '@shop/price';\nconsole.log(price(Number(process.argv[2])));\n";
const BUILD: &str = "\
import { mkdirSync, writeFileSync } from 'node:fs';
import { price } from '@shop/price';
mkdirSync('dist', { recursive: true });
writeFileSync('dist/index.html', `<h1>${price(1234)}</h1>`);
console.log('built', process.env.npm_lifecycle_event);
";
const NODE_TEST: &str = "\
const test = require('node:test');
const assert = require('node:assert');
const { readFileSync } = require('node:fs');
test('the page has the price', () => assert.match(readFileSync('dist/index.html', 'utf8'), /12\\.34 €/));
";

/// Packages beside each other; nothing comes from a registry.
pub async fn build_an_npm_workspace(agent: &mut Agent<'_>) -> Check {
    agent.run("node --version | cut -d. -f1; npm --version | cut -d. -f1").await?;
    let files = [
        ("package.json", ROOT_PACKAGE),
        ("packages/price/package.json", PRICE_PACKAGE),
        ("packages/price/index.js", PRICE),
        ("packages/web/package.json", WEB_PACKAGE),
        ("packages/web/label.js", LABEL),
        ("build.mjs", BUILD),
        ("page.test.js", NODE_TEST),
    ];
    for (path, content) in files {
        agent.write(&format!("shop/{path}"), content).await?;
    }
    let install = "npm install --offline --no-audit --no-fund 2>&1 | sed -E 's/ in [0-9.]+m?s$//'";
    for line in [
        install,
        "find node_modules -mindepth 1 -printf '%p %y -> %l\\n' | sort",
        "npm test --silent | grep -E '^(ok|not ok|built|# (pass|fail))'",
        "cat dist/index.html && npx --offline label 995",
        "rm dist/index.html && node --test > /dev/null 2>&1",
        "npm run missing 2>&1 | head -1",
    ] {
        agent.run_with(line, ExecOptions { cwd: Some("shop".to_owned()), ..ExecOptions::default() }).await?;
    }
    Ok(())
}

/// Fixed names and times, so that commits have the same ids everywhere.
const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "A"),
    ("GIT_AUTHOR_EMAIL", "a@example.com"),
    ("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z"),
    ("GIT_COMMITTER_NAME", "A"),
    ("GIT_COMMITTER_EMAIL", "a@example.com"),
    ("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z"),
];

/// The folder and the command of each step: two clones of one bare repository, whose changes
/// conflict.
const STEPS: [(&str, &str); 14] = [
    (".", "git init --quiet --bare --initial-branch=main origin.git && git clone origin.git one 2>&1"),
    ("one", "printf '1\\n2\\n3\\n' > list && chmod +x list && ln -s list link && git add ."),
    ("one", "git commit --quiet -m 'Begin ü' && git push --quiet origin HEAD"),
    (".", "git clone --quiet origin.git two"),
    ("two", "sed -i s/2/zwei/ list && git commit --quiet -am zwei && git push --quiet"),
    ("one", "sed -i s/2/two/ list && git commit -qam two && git push -q origin HEAD 2>&1 | grep rejected"),
    ("one", "git pull --no-rebase 2>&1 | grep CONFLICT; cat list; git status --short"),
    ("one", "seq 4 > list && git commit --quiet -am merged && git push --quiet origin HEAD"),
    ("two", "git pull --quiet && git log --graph --format='%h %an %s'"),
    ("two", "git ls-files --stage && git diff --stat HEAD^1"),
    ("two", "git mv list deeper && git stash --quiet && git stash list && git status --short"),
    ("two", "git stash pop --quiet && git status --short && git reset --quiet --hard && git clean -fd"),
    ("two", "git worktree add --quiet ../three && ls -A ../three && git branch"),
    ("two", "git fsck --no-dangling && git gc --quiet && git rev-list --objects --all | wc -l"),
];

/// A whole merge, a stash, and a second working tree.
pub async fn clone_change_and_push_a_repository(agent: &mut Agent<'_>) -> Check {
    for (place, line) in STEPS {
        let env = IDENTITY.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let options = ExecOptions { cwd: Some(place.to_owned()), env, ..ExecOptions::default() };
        agent.run_with(line, options).await?;
    }
    Ok(())
}
