//! The cases: one script for each kind of program.

/// A case: a sentence, the host programs that it needs, a script, and its exact standard output.
pub struct Case {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    pub script: &'static str,
    pub output: &'static str,
}

pub const CASES: &[Case] = &[
    Case {
        name: "python_prints_a_product",
        needs: &["python3"],
        script: "python3 -c 'print(6*7)'",
        output: "42\n",
    },
    Case {
        name: "git_commits_and_clones_a_local_repository",
        needs: &["git"],
        script: "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
                 git init -q a && cd a && echo hi > f && git add f && git commit -qm first && cd .. && \
                 git clone -q a b && cat b/f && git -C b log --format=%s",
        output: "hi\nfirst\n",
    },
    Case {
        name: "npm_makes_a_package",
        needs: &["npm"],
        script: "mkdir p && cd p && npm init -y >/dev/null && node -p 'require(\"./package.json\").name'",
        output: "p\n",
    },
    Case {
        name: "node_serves_and_asks_itself",
        needs: &["node"],
        script: "node -e 'const h=require(\"http\");const s=h.createServer((q,r)=>r.end(\"pong\")).listen(0,()=>\
                 h.get({port:s.address().port,agent:false},r=>{r.on(\"data\",d=>console.log(String(d)));\
                 r.on(\"end\",()=>s.close())}))'",
        output: "pong\n",
    },
    Case {
        name: "gcc_compiles_and_runs_hello_world",
        needs: &["gcc"],
        script: "printf '#include <stdio.h>\\nint main(){puts(\"hello\");}' > h.c && gcc -o h h.c && ./h",
        output: "hello\n",
    },
    Case {
        name: "a_python_asyncio_server_is_asked_by_curl",
        needs: &["python3", "curl"],
        script: r#"cat > s.py <<'P'
import asyncio
async def answer(reader, writer):
    await reader.readline()
    writer.write(b'HTTP/1.0 200 OK\r\n\r\nfrom asyncio')
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(answer, '127.0.0.1', 8000)
    print('up', flush=True)
    await server.serve_forever()
asyncio.run(main())
P
mkfifo up; python3 s.py > up & read line < up
curl -s http://127.0.0.1:8000/; kill $!"#,
        output: "from asyncio",
    },
    Case {
        name: "java_starts",
        needs: &["java"],
        script: "java -XX:+UseSerialGC -Xmx64m -version 2>&1 | grep -c 'version'",
        output: "1\n",
    },
    Case {
        name: "gdb_debugs_ones_own_program",
        needs: &["gdb"],
        script: "gdb -batch -ex run --args /bin/true 2>&1 | grep -o 'exited normally'",
        output: "exited normally\n",
    },
    Case {
        name: "strace_traces_ones_own_program",
        needs: &["strace"],
        script: "strace -f -e trace=execve -o t /bin/true; grep -c execve t",
        output: "1\n",
    },
    Case {
        name: "perl_forks_and_waits",
        needs: &["perl"],
        script: "perl -e 'if(my $p=fork){waitpid($p,0);print $?>>8,\"\\n\"}else{exit 7}'",
        output: "7\n",
    },
    Case {
        name: "python_multiprocessing_uses_shared_memory",
        needs: &["python3"],
        script: "python3 -c 'import multiprocessing as m\nif __name__==\"__main__\":\n  with m.Pool(3) as p: \
                 print(sum(p.map(abs, [-1,-2,-3])))'",
        output: "6\n",
    },
    Case {
        name: "dev_stderr_and_dev_stdout_can_be_opened_again",
        needs: &[],
        script: "echo a > /dev/stderr; echo b > /dev/stdout; cat /dev/fd/0 < /etc/hosts > /dev/null && echo c",
        output: "b\nc\n",
    },
    Case {
        name: "folders_are_renamed_in_home_and_workspace_as_npm_and_git_do",
        needs: &[],
        script: "mkdir -p ~/a/b a/b && mv a c && mv ~/a ~/c && ls -d c/b ~/c/b",
        output: "/home/user/c/b\nc/b\n",
    },
    Case {
        name: "home_and_tmp_can_be_written_to",
        needs: &[],
        script: "echo x > /tmp/x && echo y > ~/y && mktemp -d >/dev/null && cat /tmp/x ~/y",
        output: "x\ny\n",
    },
    Case {
        name: "the_hosts_name_resolves_to_loopback",
        needs: &["getent"],
        script: "getent hosts \"$(hostname)\" | cut -d' ' -f1",
        output: "127.0.0.1\n",
    },
];
