/** Generated from crates/server/openapi.json by `npm run generate`; not edited by hand. */

export interface paths {
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns metrics of the server for Prometheus: requests by route, method and status, their
         *     durations, and those in flight; connections; commands; sandboxes by state; the memory, file
         *     descriptors and threads of the server.
         * @description Only keys that `eyot serve --metrics-key` names may read them.
         */
        get: operations["server_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tool/{tool}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Calls a tool of the toolset `pool` and answers with the tool's bare result.
         * @description It acts in the key's first pool unless a header `Eyot-Pool` names another. A failure is for the
         *     model to read: `{"error": sentence}`.
         */
        post: operations["tools_call_pool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the agents. A key starts those with `webhook`; a server without keys starts them all. */
        get: operations["agents_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/agents/{agent}/{instance}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Starts an agent. The run goes on by itself: its stream tells what happens. Tools in the body are the caller's own; each call
         *     of one waits for its result.
         */
        post: operations["agents_begin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the capabilities of the server's provider. */
        get: operations["server_capabilities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/commit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes an image of a snapshot or of a sandbox as it is now, which sandboxes can be made from.
         * @description It is the image that the sandbox was made from, with its configuration, and one layer more. A sandbox made of anything else
         *     is refused (`422`). Of a sandbox a snapshot is taken first, as for a fork. It ends when the connection does.
         *
         *     Only keys that `eyot serve --image-key` names may commit.
         */
        post: operations["snapshots_commit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares the files of two snapshots or sandboxes. */
        get: operations["snapshots_diff"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams the event log, oldest first: events `event`, each with its number as its id. */
        get: operations["events_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes sandboxes that begin with the files of a snapshot, or with the present files of a sandbox.
         * @description They have its spec. If one can't be made, none stays.
         */
        post: operations["snapshots_fork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns `ok` when the server answers.
         * @description Needs no key.
         */
        get: operations["server_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the images, sorted by name. Every key may use them. */
        get: operations["images_list"];
        put?: never;
        post?: never;
        /**
         * Removes an image, and what no other image and no sandbox needs of it. An image that sandboxes
         *     are made over is refused (`409`).
         * @description Only keys that `eyot serve --image-key` names may remove.
         */
        delete: operations["images_remove"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Imports the images of an archive, the request's body: an OCI layout, what `docker save` writes,
         *     or a tarball of a root file system. It may be compressed by gzip or zstd.
         * @description Only keys that `eyot serve --image-key` names may import.
         */
        post: operations["images_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/images/pull": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pulls an image from its registry, even if there is one of that name: the events `progress`, and
         *     last `image` or `problem`. The pull ends when the connection does, and a later one continues.
         * @description With a key: images that the configuration names or that `allow` under `[registries]` matches.
         *     Others are refused (`403`).
         */
        post: operations["images_pull"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns this document (OpenAPI 3.1).
         * @description Needs no key.
         */
        get: operations["server_document"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the pools that the key opens. */
        get: operations["pools_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{pool}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the sandboxes of a pool, by name.
         * @description This wakes none and does not count as activity.
         */
        get: operations["pools_get"];
        put?: never;
        post?: never;
        /** Destroys every sandbox of a pool, and the pool itself. */
        delete: operations["pools_close"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{pool}/sandboxes/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Creates a sandbox of a pool from the pool's template.
         * @description If it exists, it is woken, and the answer lists the differences between its spec and the
         *     template.
         */
        put: operations["pools_make"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/pools/{pool}/transfer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Copies a file or a tree from one sandbox of a pool to another, which is created if it does not
         *     exist.
         */
        post: operations["pools_transfer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists runs, the newest first, without their input and their result. */
        get: operations["agents_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a run, with its input and its result. */
        get: operations["agents_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Aborts a run: its calls end, and the run ends when its agent has seen that. One that has ended is fine. */
        post: operations["agents_abort"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the stored events of a run, oldest first. */
        get: operations["agents_run_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Goes on with a run whose process is gone. A server does so with its own runs when it starts. `409`: the run has ended, or
         *     its process lives, or there is no such agent any more.
         */
        post: operations["agents_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams a run. Each event of the run is an event of its type, under its number. A call of one of the caller's own tools is an
         *     event `tool_request`, without a number; one that waits when the stream begins comes first. The stream ends behind `run_end`.
         *     After a break it goes on behind the event that `Last-Event-ID` names.
         */
        get: operations["agents_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/tool_calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the calls of a run that wait for its caller. */
        get: operations["agents_waiting"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run}/tool_calls/{call}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answers a call of one of the caller's own tools. The first answer counts. `404`: no such call waits; it was answered, or its
         *     deadline has passed.
         */
        post: operations["agents_answer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the sandboxes of a pool. */
        get: operations["sandboxes_list"];
        put?: never;
        /** Creates a sandbox. */
        post: operations["sandboxes_create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns a sandbox's record.
         * @description This does not wake it, and does not count as activity.
         */
        get: operations["sandboxes_get"];
        put?: never;
        post?: never;
        /** Destroys a sandbox: its processes, mounts and files. */
        delete: operations["sandboxes_destroy"];
        options?: never;
        head?: never;
        /**
         * Changes a sandbox's labels, deadlines or egress rules.
         * @description Absent fields stay as they are; if one field is wrong, nothing is changed. A change of deadlines
         *     or rules wakes the sandbox.
         */
        patch: operations["sandboxes_patch"];
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/egress": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the egress rules that apply now. */
        get: operations["network_rules"];
        /**
         * Replaces the egress rules.
         * @description Connections that the new rules do not allow are closed.
         */
        put: operations["network_set_rules"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/egress/decisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams the decisions about outgoing connections, oldest first: events `decision`. */
        get: operations["network_decisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/exec": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a command until it exits.
         * @description A failing exit code is a result, not an error. The command is cancelled when the client
         *     disconnects.
         */
        post: operations["exec_exec"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/exec/socket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Runs a command over a WebSocket: its input, its output as it comes, signals, a terminal's size.
         * @description The client's first message is text, an `ExecBody`. After that its binary messages are standard
         *     input (an empty one ends it), and its text messages are `SocketControl`s. The server's binary
         *     messages are output behind one byte, which is 1 for standard output and 2 for standard error;
         *     its text messages are `SocketEvent`s, the last of which is `end` or `problem`.
         */
        get: operations["exec_exec_socket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/exec/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Runs a command and streams what it writes: the event `started`, then `stdout` and `stderr` with pieces in base64, each with
         *     its number as its id, and last `end` (without the output) or `problem`. When the connection breaks, the stream can be taken
         *     up again; a command that nobody reads for `linger_ms` is killed, and one that is 1 MiB ahead of its reader waits.
         */
        post: operations["exec_exec_stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/exec/stream/{exec}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Takes up the stream of a command again: what comes behind the event whose id the header `Last-Event-ID` says; all of it
         *     without that header. A reader that is still there reads no more. `409`: some of it is not kept any more (1 MiB of what was
         *     read is).
         */
        get: operations["exec_exec_again"];
        put?: never;
        post?: never;
        /** Ends a streamed command with its whole process tree; its stream tells its end. One that has ended is fine. */
        delete: operations["exec_exec_end"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/exists": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Tells whether a path exists.
         * @description A dangling link counts as missing.
         */
        get: operations["files_exists"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the bytes of a file. */
        get: operations["files_read"];
        /**
         * Writes the request's body to a file and creates missing parent directories.
         * @description If the body breaks off, nothing is changed.
         */
        put: operations["files_write"];
        post?: never;
        /** Removes a file, a symbolic link (not its target), or, with `recursive`, a directory. */
        delete: operations["files_remove"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/glob": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Finds files whose path matches a pattern, sorted by path. */
        get: operations["files_glob"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/grep": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Finds lines that match a pattern, sorted by path and line. */
        get: operations["files_grep"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists a directory, including dot files. */
        get: operations["files_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every process that runs in the sandbox, including those that Eyot did not start. */
        get: operations["processes_live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/mkdir": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates a directory. */
        post: operations["files_mkdir"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/open": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Opens a running sandbox: returns its record and its capabilities. */
        post: operations["sandboxes_open"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the addresses at which published ports can be reached on the server's host. */
        get: operations["ports_published"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/ports/{port}/connect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Connects to a TCP port on the sandbox's loopback.
         * @description Binary messages carry the bytes; an empty message closes the sender's direction.
         */
        get: operations["ports_connect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/ports/{port}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Opens a preview: a port of a sandbox as a web page.
         * @description Each call returns new tokens; earlier ones stay valid until they expire. All previews, public
         *     ones too, end when the server restarts.
         */
        post: operations["ports_open"];
        /**
         * Closes the preview of a port.
         * @description All its tokens become invalid, and connections under way are cut.
         */
        delete: operations["ports_close"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/processes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the started processes that are still known. */
        get: operations["processes_list"];
        put?: never;
        /**
         * Starts a process that outlives the call.
         * @description The latest part of its output is kept.
         */
        post: operations["processes_start"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/processes/{process}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads a process's log as server-sent events `log`.
         * @description The first event says which part of the log follows; the others have the output, each with the
         *     offset behind it as its id.
         */
        get: operations["processes_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/processes/{process}/signal": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sends a signal to a started process's group, or kills the process with all its descendants. */
        post: operations["processes_signal"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/processes/{process}/stdin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Writes to a started process whose input follows.
         * @description The answer does not wait until it is read. 409: it takes no more input, or has 256 KiB still to read.
         */
        post: operations["processes_write_stdin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/processes/{process}/wait": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Waits until a started process has ended. */
        get: operations["processes_wait"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/rename": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Moves a file or a directory, replacing a file (or an empty directory) at the new path. */
        post: operations["files_rename"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Gives a sandbox the files of a snapshot. What was changed since is lost.
         * @description A sandbox that runs is put to sleep for it, and woken again. If commands run, it is refused (`409`) unless `stop` says to end
         *     them.
         */
        post: operations["snapshots_roll_back"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/sleep": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Puts a sandbox to sleep: its processes end, its files stay, and the next use wakes it.
         * @description Succeeds if it sleeps already.
         */
        post: operations["sandboxes_sleep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Takes a snapshot of a sandbox: keeps its files as they are.
         * @description A sandbox that runs goes on, or is put to sleep for it and woken again where it can't. If commands run, it is refused (`409`)
         *     unless `stop` says to end them.
         */
        post: operations["snapshots_take"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/stat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the metadata of a file. */
        get: operations["files_stat"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/terminals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the terminals of a sandbox. It is not woken. */
        get: operations["terminals_list"];
        put?: never;
        /**
         * Opens a terminal. It is connected to by a WebSocket, `/terminals/{terminal}/socket`, as often as one likes; one to which
         *     nobody was connected for 10 minutes ends with all that runs in it.
         */
        post: operations["terminals_open"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/terminals/{terminal}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a terminal with all that runs in it. */
        delete: operations["terminals_end"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/terminals/{terminal}/socket": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Connects to a terminal by a WebSocket.
         * @description The server sends what was written last (up to 256 KiB), the event `started`, then what comes.
         *     The client's binary messages are what is typed, its text messages are `SocketControl`s. The
         *     server's binary messages are output, its text messages are `SocketEvent`s, the last of which is
         *     `end` or `problem`. A terminal has one viewer: a new connection closes the one before.
         */
        get: operations["terminals_attach"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Packs a file or a tree as tar.
         * @description Names in it begin with the last segment of the path.
         */
        get: operations["files_tree_out"];
        /** Unpacks a tar stream, the request's body, below a directory. */
        put: operations["files_tree_in"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns what a sandbox uses now: memory, disk, processors.
         * @description This does not count as activity.
         */
        get: operations["sandboxes_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/wake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Wakes a sandbox.
         * @description Succeeds if it runs already.
         */
        post: operations["sandboxes_wake"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/sandboxes/{sandbox}/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams changes of a file, or of the names in a directory, from the moment that the answer
         *     begins: events `change`.
         */
        get: operations["files_watch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the caller: the holder of the key that comes with the request, or the key that a browser
         *     signed in with.
         * @description Needs no key; a wrong one is refused.
         */
        get: operations["session_who"];
        put?: never;
        /**
         * Signs a browser in with an API key, for 12 hours.
         * @description The answer sets a cookie and has the proof that belongs to it. This is for the page at `/`;
         *     programs send their key with each request.
         */
        post: operations["session_sign_in"];
        /**
         * Signs a browser out, and ends its requests under way.
         * @description Succeeds if it is signed out already.
         */
        delete: operations["session_sign_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the snapshots of a pool, oldest first. */
        get: operations["snapshots_list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/snapshots/{snapshot}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns what is known of a snapshot. */
        get: operations["snapshots_get"];
        put?: never;
        post?: never;
        /** Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are. */
        delete: operations["snapshots_remove"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/toolsets/{toolset}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Declares the tools of a toolset in a model provider's format. */
        get: operations["tools_declare"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/toolsets/{toolset}/{tool}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Calls a tool with its arguments.
         * @description A failure is for the model to read: an answer with `is_error`.
         */
        post: operations["tools_call"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the server's version.
         * @description Needs no key.
         */
        get: operations["server_version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The reason of an abort. */
        AbortBody: {
            /** @description The reason, which the run's failure tells. */
            reason?: string | null;
        };
        /** @description An agent. */
        AgentEntry: {
            /** @description The description. */
            description?: string | null;
            /** @description The name. */
            name: string;
            /** @description The reason why its runs can't work, such as a missing model. The server's operator can mend it. */
            problem?: string | null;
            /** @description Every key may start it. */
            webhook: boolean;
        };
        /** @description The agents of a server. */
        AgentList: {
            /** @description The agents, by name. */
            agents: components["schemas"]["AgentEntry"][];
        };
        /** @description The capabilities of the server's sandboxes, and the protections around one. */
        CapabilitiesAnswer: {
            /** @description The capabilities of its sandboxes. */
            capabilities: components["schemas"]["Capability"][];
            /** @description The protections that would hold around one that is made from a default spec. */
            isolation: components["schemas"]["Isolation"];
            /** @description The provider. */
            provider: string;
        };
        /**
         * @description One thing that a provider may or may not do beyond the required methods.
         * @enum {string}
         */
        Capability: "shell" | "argv" | "pty" | "signals" | "kill_tree" | "users" | "processes" | "beneath" | "ranged_read" | "append" | "atomic_write" | "symlinks" | "glob" | "grep" | "tar" | "dial" | "watch" | "usage" | "live_processes" | "reopen" | "persistent_workspace" | "mounts" | "network_host" | "network_egress" | "deadlines" | "change_deadlines" | "sleep" | "snapshots" | "cow_mounts" | "commit";
        /**
         * @description The kind of a change.
         * @enum {string}
         */
        ChangeKind: "added" | "changed" | "removed";
        /** @description A tool that the caller of a run answers itself. */
        ClientTool: {
            /** @description The description that the model is shown. */
            description: string;
            /** @description The name: at most 64 letters, digits, `_` and `-`. No tool of the agent has it. */
            name: string;
            /** @description The JSON Schema of the arguments; its `type` is `object`. */
            parameters: Record<string, never>;
        };
        /** @description The answer to a call. */
        ClientToolAnswer: {
            /** @description The text for the model. */
            content: string;
            /** @description The call failed, and the text says why. */
            is_error?: boolean;
        };
        /** @description A call of a caller's tool that waits for its answer. */
        ClientToolCall: {
            /** @description The arguments, which fit the tool's schema as far as it is checked. */
            arguments: Record<string, never>;
            /**
             * Format: int64
             * @description The time after which the call has failed, in milliseconds since 1970 (UTC).
             */
            deadline_ms: number;
            /** @description The id of the call, as in the event `tool_start`. */
            id: string;
            /** @description The tool. */
            tool: string;
        };
        /** @description Options of a commit. */
        CommitOptions: {
            /** @description A snapshot of the pool or, if there is none of that name, a sandbox; each by name or id. */
            from: string;
            /** @description The name of the image, such as `app:1`. An image that has it loses it. */
            reference: string;
            /** @description As for a snapshot. */
            stop?: boolean;
        };
        /** @description A file, directory or link as one side of a comparison has it. */
        ComparedFile: {
            /**
             * Format: int32
             * @description The permission bits.
             */
            mode: number;
            /**
             * Format: int64
             * @description The size of a file, in bytes; 0 for all others.
             */
            size_bytes: number;
            /** @description The kind: `file`, `directory`, `symlink` or `other`. */
            type: components["schemas"]["ComparedFileType"];
        };
        /**
         * @description The kind of something that is compared.
         * @enum {string}
         */
        ComparedFileType: "file" | "directory" | "symlink" | "other";
        /** @description Options that only a provider with a container engine has; `pull` counts for others too. */
        ContainerSpec: {
            /** @description Names that the sandbox knows, and their addresses. */
            extra_hosts?: {
                [key: string]: string;
            };
            /** @description The engine's network to be in, by its name, with the network `bridge`; by default the engine's own. */
            network?: string | null;
            /** @description TCP ports that the engine publishes on the host's 127.0.0.1, each on a port of its choosing. They need a network. */
            ports?: number[];
            /** @description The occasions on which the image is fetched. By default `"missing"`. */
            pull?: components["schemas"]["PullPolicy"];
            /** @description The engine's runtime, such as `runsc` or `kata`; by default the engine's default. */
            runtime?: string | null;
            /** @description Directories that are kept in memory, with their sizes in MiB. What lies there is lost with a sleep. */
            tmpfs_mib?: {
                [key: string]: number;
            };
        };
        /** @description A sandbox to make. */
        CreateSandbox: {
            /** @description Answer with the sandbox that has the name already, woken if it sleeps, instead of refusing. */
            get_or_create?: boolean;
            /** @description The pool; by default the key's own. */
            pool?: string | null;
            /** @description The spec to make it from; every part has a default. */
            spec?: components["schemas"]["SandboxSpec"];
        };
        /** @description One name in a directory. */
        DirEntry: {
            file_type?: components["schemas"]["FileType"] | null;
            /** @description The name, not the path. Bytes that are not UTF-8 stand as U+FFFD; `name_bytes` then has the real ones. */
            name: string;
            /** @description The name's bytes, only when they are not UTF-8. */
            name_bytes?: number[] | null;
            /**
             * Format: int64
             * @description Size in bytes, where the backend says it without another question.
             */
            size?: number | null;
        };
        /**
         * @description The means by which the disk limit is held.
         * @enum {string}
         */
        DiskEnforcement: "quota" | "monitored" | "none";
        /** @description The hosts that a sandbox may connect to. Without any rule: every public address. */
        EgressRules: {
            /**
             * @description The hosts that are allowed: `example.com`, `*.example.com`, `10.1.0.0/16`, each optionally
             *     with `:port`. If there is any rule here, nothing else is allowed. A network here also opens
             *     addresses that are not public.
             */
            allow?: string[];
            /** @description The hosts that are refused, whatever else holds. */
            deny?: string[];
        };
        /**
         * @description The means by which a limit is held.
         * @enum {string}
         */
        Enforcement: "cgroup" | "rlimit" | "none";
        /** @description The output and the outcome of a command. */
        ExecAnswer: {
            /** @description It was cancelled, and the whole process tree was killed. */
            aborted: boolean;
            /**
             * Format: int64
             * @description From the start to the outcome, in milliseconds.
             */
            duration_ms: number;
            /**
             * Format: int32
             * @description The same in one number: the code, 128 + signal, 124 for the deadline, 130 for a cancel, 137 for out of memory.
             */
            exit_code: number;
            /** @description It was to be killed, and that could not be confirmed. */
            may_still_be_running: boolean;
            /**
             * @description The outcome: `{"exited": 0}`, `{"signaled": 9}`, `"timed_out"`, `"cancelled"`,
             *     `"out_of_memory"`.
             */
            outcome: components["schemas"]["Outcome"];
            /** @description A process that it left behind, such as `sleep 60 &`, still held its output open when reading stopped. */
            output_open: boolean;
            /** @description Standard error as text, up to the limit, with a sentence where the deadline has passed. */
            stderr: string;
            /** @description Standard error's bytes, only where they are not UTF-8. */
            stderr_base64?: string | null;
            /**
             * Format: int64
             * @description The number of bytes it wrote to standard error in all.
             */
            stderr_bytes: number;
            /** @description Standard error was longer than what was kept. */
            stderr_truncated: boolean;
            /** @description Standard output as text, up to the limit; what is not UTF-8 becomes U+FFFD. */
            stdout: string;
            /** @description Standard output's bytes, only where they are not UTF-8. */
            stdout_base64?: string | null;
            /**
             * Format: int64
             * @description The number of bytes it wrote to standard output in all.
             */
            stdout_bytes: number;
            /** @description Standard output was longer than what was kept. */
            stdout_truncated: boolean;
            /** @description The deadline has passed, and the whole process tree was killed. */
            timed_out: boolean;
        };
        /** @description A command. One of `command` and `argv` is there. */
        ExecBody: {
            /** @description A program and its arguments; no shell. */
            argv?: string[] | null;
            /** @description Shell source, run by `bash -c`, else `sh -c`. */
            command?: string | null;
            /** @description The working directory, resolved against the sandbox's own. */
            cwd?: string | null;
            /** @description Variables layered over the sandbox's. */
            env?: {
                [key: string]: string;
            };
            /**
             * Format: int64
             * @description The most bytes of each stream that are kept; by default the sandbox's limit, else 1 MiB.
             */
            max_output_bytes?: number | null;
            pty?: components["schemas"]["PtySize"] | null;
            /** @description The standard input, as text. Without any it reads end of file. */
            stdin?: string | null;
            /** @description The standard input, as base64. */
            stdin_base64?: string | null;
            /** @description Over a WebSocket: standard input follows in messages. By default `false`. */
            stdin_follows?: boolean;
            /**
             * Format: int64
             * @description The deadline from the start, in milliseconds; by default the sandbox's, and without that none.
             */
            timeout_ms?: number | null;
            /** @description The user who runs it; by default the sandbox's user. */
            user?: string | null;
        };
        /** @description The answer whether something is there. */
        Exists: {
            /** @description It is. */
            exists: boolean;
        };
        /** @description The way a process ended, as the kernel reported it. */
        ExitStatus: {
            /**
             * Format: int32
             * @description It exited with this code, 0–255.
             */
            exited: number;
        } | {
            /**
             * Format: int32
             * @description This signal ended it.
             */
            signaled: number;
        } | "out_of_memory";
        /** @description A difference between two sides. A directory that was added or removed is followed by all that is in it. */
        FileChange: {
            after?: components["schemas"]["ComparedFile"] | null;
            before?: components["schemas"]["ComparedFile"] | null;
            /** @description The kind. */
            change: components["schemas"]["ChangeKind"];
            /** @description The path inside. Bytes that are not UTF-8 are replaced. */
            path: string;
            /**
             * @description A unified diff, where it was asked for. There is none of what is no text or larger than 1 MiB, nor beyond the
             *     [`FileChanges::MAX_TEXT_BYTES`] that all have together.
             */
            text?: string | null;
        };
        /** @description The differences between two sides. */
        FileChanges: {
            /** @description The changes, by path. */
            changes: components["schemas"]["FileChange"][];
            /** @description There are more: at most [`FileChanges::MAX`] are listed, with paths of [`FileChanges::MAX_PATH_BYTES`] in all. */
            truncated: boolean;
        };
        /**
         * @description The facts about a file. Everything but the two required facts is absent when the backend does
         *     not know it.
         *
         *     For a symbolic link, `is_file`, `is_directory`, `size`, `modified_ms`, `mode` describe the target and
         *     `is_symbolic_link` the path itself. A dangling link is not found.
         */
        FileStat: {
            /** @description It is a directory. */
            is_directory: boolean;
            /** @description It is a regular file. */
            is_file: boolean;
            /** @description The path itself is a symbolic link. */
            is_symbolic_link?: boolean | null;
            /**
             * Format: int32
             * @description Permission bits, such as `0o644`.
             */
            mode?: number | null;
            /**
             * Format: int64
             * @description Last modification, in milliseconds since 1970 (UTC).
             */
            modified_ms?: number | null;
            /**
             * Format: int64
             * @description Size in bytes.
             */
            size?: number | null;
        };
        /**
         * @description The kind of thing that a path names.
         * @enum {string}
         */
        FileType: "file" | "directory" | "symlink" | "other";
        /** @description Options of forks. */
        ForkOptions: {
            /** @description The number of sandboxes to make, from 1 to 64. */
            count?: number;
            /** @description A snapshot of the pool or, if there is none of that name, a sandbox; each by name or id. */
            from: string;
            /** @description The name of the fork; of several, the beginning of their names. By default the name of what is forked. */
            name?: string | null;
            /** @description As for a snapshot. */
            stop?: boolean;
        };
        /** @description The sandboxes that were made of something. */
        Forks: {
            /** @description Their names. */
            names: string[];
            /** @description The commands that were ended for it. */
            stopped: string[];
        };
        /** @description The result of glob: files and symbolic links (never followed), sorted by path. */
        GlobResult: {
            /** @description Absolute paths. Bytes that are not UTF-8 stand as U+FFFD. */
            paths: string[];
            /** @description There were more than `max_results`. */
            truncated: boolean;
        };
        /** @description One line that matched. */
        GrepMatch: {
            /** @description The line without its end, cut to `max_line_bytes`. */
            line: string;
            /**
             * Format: int64
             * @description The line's number, counted from 1.
             */
            line_number: number;
            /** @description The line was longer. */
            line_truncated: boolean;
            /** @description The file's absolute path. */
            path: string;
        };
        /**
         * @description The result of grep, sorted by path and line. Binary files (with a NUL in their beginning) are
         *     left out.
         */
        GrepResult: {
            /** @description The lines. */
            matches: components["schemas"]["GrepMatch"][];
            /** @description There were more than `max_matches`. */
            truncated: boolean;
        };
        /** @description The answer of a server that is up. */
        Health: {
            /** @description `ok`. */
            status: string;
        };
        /**
         * @description The correspondence of host users and sandbox users.
         * @enum {string}
         */
        IdentityMap: "single" | "range";
        /**
         * @description The action taken on a sandbox that was not used for its idle timeout.
         * @enum {string}
         */
        IdleAction: "destroy" | "sleep";
        /** @description An image that was made of a snapshot or a sandbox. */
        ImageCommitted: components["schemas"]["ImageInfo"] & {
            /** @description The commands that were ended for it. */
            stopped: string[];
        };
        /** @description An image. */
        ImageInfo: {
            /** @description Tells whether every part is there. */
            complete: boolean;
            /** @description The time at which it was made, as the image says (RFC 3339). */
            created?: string | null;
            /** @description The manifest's digest. */
            digest: string;
            /** @description The number of layers. */
            layers: number;
            /**
             * @description The image's name, as short as it can be.
             * @example node:22
             */
            name: string;
            /**
             * Format: int64
             * @description The size of the blobs together, in bytes, as they are kept. Layers that images share count
             *     for each image.
             */
            size_bytes: number;
        };
        /** @description Images of a server. */
        ImageList: {
            /** @description The images, sorted by name. */
            images: components["schemas"]["ImageInfo"][];
        };
        /** @description The protections around a sandbox. */
        Isolation: {
            /** @description The capabilities that the sandbox's processes may hold, such as `CAP_CHOWN`; within its own user namespace. */
            capabilities: string[];
            /** @description cgroup controllers in force, such as `memory`. */
            cgroup_controllers: string[];
            /** @description Nothing inside can signal, read, or pose as the guest, as whatever user it runs. */
            guest_out_of_reach?: boolean;
            identity?: components["schemas"]["IdentityMap"] | null;
            /**
             * Format: int32
             * @description Landlock is in force, by this ABI.
             */
            landlock_abi?: number | null;
            /** @description The means by which each limit is held. */
            limits: components["schemas"]["LimitsEnforced"];
            /** @description The namespaces of its own, such as `user`, `mount`, `pid`. */
            namespaces: string[];
            /** @description The network that it may reach. */
            network: components["schemas"]["NetworkMode"];
            /** @description `no_new_privs` is set. */
            no_new_privileges: boolean;
            /** @description The provider. */
            provider: string;
            /** @description The root file system is read-only. */
            readonly_rootfs: boolean;
            /** @description The container engine's runtime, such as `runc`, where there is one. */
            runtime?: string | null;
            /** @description A seccomp filter is in force. */
            seccomp?: boolean;
            /**
             * Format: int32
             * @description It has this many instructions, where that is known.
             */
            seccomp_instructions?: number | null;
            /**
             * @description Paths inside whose files the host or other sandboxes use too, such as a mounted folder. File locks, notifications
             *     and sockets work across them; everywhere else they stay inside.
             */
            shared_files?: string[];
            /** @description The kernel is the host's own: a hole in it is a hole in the sandbox. */
            shares_host_kernel: boolean;
            user_counts?: components["schemas"]["UserCounts"] | null;
        };
        /**
         * @description The deadlines of a sandbox. Both deadlines run from the create, whether an Eyot process is alive
         *     or not.
         */
        Lifecycle: {
            /** @description `false` switches both deadlines off. By default `true`. */
            auto_destroy?: boolean;
            /**
             * Format: int64
             * @description After this many milliseconds without a call, a running command or traffic, `on_idle` happens. Time that it sleeps
             *     does not count.
             */
            idle_timeout_ms?: number | null;
            /** @description The action taken once it has been idle for so long. By default `"destroy"`. */
            on_idle?: components["schemas"]["IdleAction"];
            /**
             * Format: int64
             * @description It is destroyed this many milliseconds after it was made, even while it works, and even while it sleeps.
             */
            ttl_ms?: number | null;
        };
        /** @description Limits on what a sandbox may use. `None`: the provider's default. */
        Limits: {
            /**
             * Format: double
             * @description Processors, such as 1.5; at least 0.01.
             */
            cpus?: number | null;
            /**
             * Format: int64
             * @description Disk in MiB, at least 1; where the native provider can hold it, at least 8. What lies in a persistent workspace or
             *     in a mount is not counted. `isolation()` says whether it is held.
             */
            disk_mib?: number | null;
            /**
             * Format: int64
             * @description The largest file that is read or written through the handle, in bytes. By default unlimited.
             */
            max_file_bytes?: number | null;
            /**
             * Format: int64
             * @description The most bytes of each stream of a command that are kept. By default 1,048,576.
             */
            max_output_bytes?: number | null;
            /**
             * Format: int64
             * @description Memory in MiB, at least 16.
             */
            memory_mib?: number | null;
            /**
             * Format: int64
             * @description Processes and threads, at least 8. By default 512.
             */
            pids?: number | null;
            /**
             * Format: int64
             * @description The deadline of a command that names none, in milliseconds. By default none.
             */
            timeout_ms?: number | null;
        };
        /** @description The means by which each limit is held. */
        LimitsEnforced: {
            /** @description `cpus`. */
            cpus: components["schemas"]["Enforcement"];
            /** @description `disk_mib`. */
            disk: components["schemas"]["DiskEnforcement"];
            /** @description `memory_mib`. */
            memory: components["schemas"]["Enforcement"];
            /** @description `pids`. */
            pids: components["schemas"]["Enforcement"];
        };
        /** @description The entries of a directory. */
        Listing: {
            /** @description Sorted by name. */
            entries: components["schemas"]["DirEntry"][];
        };
        /** @description A process that runs in a sandbox, started by any means. */
        LiveProcess: {
            /** @description The command line, cut to 512 bytes, or its name in brackets. */
            command: string;
            /**
             * Format: int64
             * @description The processor time so far in milliseconds. Absent if the backend does not count it by process.
             */
            cpu_ms?: number | null;
            /**
             * Format: int64
             * @description The resident memory in bytes. Absent if the backend does not count it by process.
             */
            memory_bytes?: number | null;
            /**
             * Format: int32
             * @description The parent's.
             */
            parent_pid: number;
            /**
             * Format: int32
             * @description The process number inside the sandbox.
             */
            pid: number;
            /**
             * @description The state, by the kernel's letter: `R` runs, `S` and `D` wait, `T` is stopped, `Z` has
             *     ended.
             */
            state: string;
            /** @description The user it runs as, by name, or by number where the sandbox does not know the name. */
            user: string;
        };
        /** @description Everything that runs in a sandbox but its guest. */
        LiveProcesses: {
            /** @description The processes, by number. */
            processes: components["schemas"]["LiveProcess"][];
            /** @description There were more than are listed. */
            truncated: boolean;
        };
        /**
         * @description Files, directories and variables that are put into a new sandbox before its first use. Paths are
         *     relative to the working directory and stay beneath it.
         */
        Manifest: {
            /** @description Directories. */
            directories?: string[];
            /** @description Variables for every command, layered over `SandboxSpec::env`. */
            env?: {
                [key: string]: string;
            };
            /** @description Files and their contents. */
            files?: {
                [key: string]: string;
            };
        };
        /** @description The properties of a pool's sandbox, where they differ from the pool's template. */
        MemberBody: {
            /** @description The image: an alias of the pool, or what the provider knows by that name. */
            image?: string | null;
            /** @description The programs that run in it whenever it is awake. */
            services?: components["schemas"]["Service"][];
            /**
             * Format: int64
             * @description It sleeps after this many idle milliseconds; by default the pool's number.
             */
            sleep_after_ms?: number | null;
        };
        /** @description A folder of the host inside the sandbox. */
        Mount: {
            /**
             * @description Copy on write: the sandbox changes a copy of its own, which begins as the folder is. The folder stays as it is until the
             *     changes are applied.
             */
            cow?: boolean;
            /** @description The folder (or file) on the host, absolute. */
            source: string;
            /** @description The path at which it appears inside. */
            target: string;
            /** @description The sandbox may write to it; by default not. */
            writable?: boolean;
        };
        /**
         * @description The network that a sandbox may reach.
         * @enum {string}
         */
        NetworkMode: "none" | "egress" | "bridge" | "host";
        /** @description The outcome of a command. */
        Outcome: {
            /**
             * Format: int32
             * @description It exited with this code.
             */
            exited: number;
        } | {
            /**
             * Format: int32
             * @description This signal ended it.
             */
            signaled: number;
        } | "timed_out" | "cancelled" | "out_of_memory";
        /** @description Changes of deadlines. A field that is absent stays as it is; `null` removes the deadline. */
        PatchLifecycle: {
            /** @description `false` switches both deadlines off. */
            auto_destroy?: boolean | null;
            /**
             * Format: int64
             * @description After this many milliseconds without use, counted from now, `on_idle` happens.
             */
            idle_timeout_ms?: number | null;
            on_idle?: components["schemas"]["IdleAction"] | null;
            /**
             * Format: int64
             * @description It is destroyed this many milliseconds after it was made.
             */
            ttl_ms?: number | null;
        };
        /** @description Changes of a sandbox. A field that is absent stays as it is. */
        PatchSandbox: {
            egress?: components["schemas"]["EgressRules"] | null;
            /** @description Labels to set; those that are `null` are removed. */
            labels?: {
                [key: string]: string | null;
            };
            lifecycle?: components["schemas"]["PatchLifecycle"] | null;
        };
        /** @description A pool. */
        PoolAnswer: {
            /** @description The name. */
            name: string;
            /** @description The sandboxes, by name. */
            sandboxes: components["schemas"]["PoolEntry"][];
        };
        /** @description The result of a create. */
        PoolCreated: {
            /** @description `false`: it was there already, and was left as it is. */
            created: boolean;
            /** @description In what the one that was there differs from what was asked for now, such as `image`; empty for a new one. */
            differs: string[];
            /** @description The image it is made of, as it was named: when it was there already, the one it was made of then. */
            image: string;
            /** @description The sandbox's name. */
            sandbox: string;
        };
        /** @description A sandbox of a pool. */
        PoolEntry: {
            /** @description The image, as it was named. */
            image: string;
            /** @description The name. */
            name: string;
            /** @description The status. */
            status: components["schemas"]["PoolStatus"];
        };
        /** @description The pools that a key opens; the first is its own. */
        PoolList: {
            /** @description Their names. */
            pools: string[];
        };
        /**
         * @description The status of a sandbox of a pool.
         * @enum {string}
         */
        PoolStatus: "running" | "sleeping" | "damaged";
        /** @description The addresses of a preview of a port. */
        PreviewAnswer: {
            /** @description Until when (RFC 3339). It ends before that with the sandbox, with the server, and when it is revoked. */
            expires_at: string;
            /** @description The header's name. */
            header: string;
            /** @description The address below the server's own host, with another such token. All previews there are one origin to a browser. */
            path_url: string;
            /**
             * Format: int32
             * @description The port inside.
             */
            port: number;
            /** @description Anybody who knows the address may see it. */
            public: boolean;
            /** @description The sandbox's id. */
            sandbox: string;
            /** @description The token that a program sends in the header, until `expires_at`; `null`: it is public. */
            token?: string | null;
            /**
             * @description The address to open: the preview's own host, if the server has such names where it was asked, else as `path_url`. It has a
             *     token that works once, within an hour, and becomes a cookie then; a public one has none.
             */
            url: string;
        };
        /** @description A preview to open: for whom, and for how long. */
        PreviewBody: {
            /** @description Anybody who knows the address may see it; by default only who has a token. */
            public?: boolean;
            /**
             * Format: int64
             * @description For how long, in milliseconds, 1,000 to 604,800,000 (a week); by default 43,200,000 (12 hours).
             */
            ttl_ms?: number | null;
        };
        /** @description An error (RFC 9457). */
        Problem: {
            /** @description With `sleeping`: the sandbox's guest ended unexpectedly. Its files are kept. */
            dead?: boolean;
            /** @description The whole sentence: what was to be done, where, and why it failed. */
            detail: string;
            /** @description The part of the request that is wrong. */
            field?: string | null;
            /** @description Advice for the reader. */
            hint?: string | null;
            /**
             * @description The kind, for code to match on.
             * @example not_found
             */
            kind: string;
            /** @description It is the sandbox itself that is not there. */
            no_sandbox?: boolean;
            /** @description The reason why it failed, without what was to be done. */
            reason: string;
            /** @description With `sleeping`: the name of the sandbox, or its id where it was asked for by that. */
            sandbox?: string | null;
            /** @description The sandbox sleeps, or has slept since the life that was asked for, or is dead. It can be woken. */
            sleeping?: boolean;
            /**
             * Format: int32
             * @description The response's status.
             */
            status: number;
            /** @description The kind, for people. */
            title: string;
            /**
             * @description `urn:eyot:problem:` and the kind.
             * @example urn:eyot:problem:not_found
             */
            type: string;
            unsupported?: components["schemas"]["Unsupported"] | null;
        };
        /** @description The facts about a started process. */
        ProcessInfo: {
            /** @description The command, as text. */
            command: string;
            /**
             * Format: int64
             * @description The time at which it ended.
             */
            ended_ms?: number | null;
            /** @description The id. */
            id: string;
            /**
             * Format: int32
             * @description The process number inside the sandbox.
             */
            pid: number;
            /**
             * Format: int64
             * @description The time at which it was started, in milliseconds since 1970 (UTC).
             */
            started_ms: number;
            /** @description The status. */
            status: components["schemas"]["ProcessStatus"];
            /** @description It had not ended at its deadline, and was killed with everything that it had started. */
            timed_out?: boolean;
        };
        /** @description Started processes. */
        ProcessList: {
            /** @description Oldest first; of those that ended, the last 64. */
            processes: components["schemas"]["ProcessInfo"][];
        };
        /** @description The status of a started process. */
        ProcessStatus: "running" | {
            /** @description It ended. */
            ended: components["schemas"]["ExitStatus"];
        };
        /** @description The removed items. */
        PruneReport: {
            /**
             * Format: int64
             * @description The blobs' bytes.
             */
            blob_bytes: number;
            /** @description The number of blobs. */
            blobs: number;
            /** @description Names of images. */
            images: string[];
            /** @description The number of unpacked layers. */
            layers: number;
        };
        /** @description The size of a terminal, in character cells. 0 is a size that is not known, as it is for the kernel: programs then use one of their own. */
        PtySize: {
            /**
             * Format: int32
             * @description Columns.
             */
            cols: number;
            /**
             * Format: int32
             * @description Rows.
             */
            rows: number;
        };
        /** @description A port of a sandbox that is published. */
        PublishedPort: {
            /** @description The address on the engine's host: always its loopback. */
            host: string;
            /**
             * Format: int32
             * @description The port there.
             */
            host_port: number;
            /**
             * Format: int32
             * @description The port inside.
             */
            port: number;
        };
        /** @description The published ports. */
        PublishedPorts: {
            /** @description In the order in which the spec has them. */
            ports: components["schemas"]["PublishedPort"][];
        };
        /**
         * @description The occasions on which an image is fetched: by an engine from a registry, by a provider with a
         *     store of its own from wherever it was told.
         * @enum {string}
         */
        PullPolicy: "missing" | "always" | "never";
        /**
         * @description A protection without which the create must fail.
         * @enum {string}
         */
        Requirement: "memory" | "cpus" | "pids" | "disk" | "landlock" | "seccomp" | "identity_range" | "own_kernel";
        /** @description The result of a rollback. */
        RollbackDone: {
            /** @description The commands that were ended for it. Services, which start again, are not among them. */
            stopped: string[];
        };
        /** @description Options of a rollback. */
        RollbackOptions: {
            /** @description As for a snapshot. */
            asleep_only?: boolean;
            /** @description The snapshot of the pool, by name or id. */
            snapshot: string;
            /** @description As for a snapshot. */
            stop?: boolean;
        };
        /** @description A run. */
        RunAnswer: {
            /** @description The agent. */
            agent: string;
            /**
             * Format: int64
             * @description The end.
             */
            ended_ms?: number | null;
            error?: components["schemas"]["RunError"] | null;
            /** @description The id. */
            id: string;
            /** @description The agent's instance. */
            instance: string;
            /** @description The run is active, and its process is gone: it can be gone on with. */
            interrupted: boolean;
            /** @description The input. Lists leave it out. */
            payload?: unknown;
            /** @description The pool that the run is of. */
            pool?: string | null;
            /** @description The result. Lists leave it out. */
            result?: unknown;
            /** @description The name of the sandbox that the agent works in, which is in the run's pool. */
            sandbox?: string | null;
            /**
             * Format: int64
             * @description The start, in milliseconds since 1970 (UTC).
             */
            started_ms: number;
            /** @description The state: `active`, `completed` or `errored`. */
            status: string;
        };
        /** @description A new run. */
        RunBody: {
            /** @description The input of the agent. An agent that is a file takes `{"prompt": "…"}`, and perhaps `session` and `result`. */
            payload?: unknown;
            /**
             * Format: int64
             * @description The time in which the caller answers a call of its tools, in milliseconds: 1 to 3,600,000; by default 300,000. Then the
             *     model is told that the tool has failed.
             */
            tool_timeout_ms?: number | null;
            /** @description The tools that the caller answers itself; at most 128. */
            tools?: components["schemas"]["ClientTool"][];
        };
        /** @description The failure of a run. */
        RunError: {
            /** @description The failure, in one sentence. */
            message: string;
            /** @description The kind. */
            name: string;
        };
        /** @description Events of a run. */
        RunEvents: {
            /** @description The events, oldest first. `docs/agents.md` lists their types and fields. */
            events: Record<string, never>[];
        };
        /** @description Runs, the newest first. */
        RunList: {
            /** @description Continues the list, as `cursor` of the next request. Absent: there is no more. */
            next_cursor?: string | null;
            /** @description The runs. */
            runs: components["schemas"]["RunAnswer"][];
        };
        /** @description A sandbox. */
        SandboxAnswer: {
            /**
             * Format: int64
             * @description The time at which it was made, in milliseconds since 1970 (UTC).
             */
            created_ms: number;
            /** @description The names of its variables. */
            env_names: string[];
            /** @description The time at which its ttl ends (RFC 3339); `null`: never. */
            expires_at?: string | null;
            /**
             * @description The id, never used twice.
             * @example sb_0192f0c1e7d87c3e9a4b5c6d7e8f9a0b
             */
            id: string;
            /**
             * Format: int64
             * @description The time without use after which it sleeps or is destroyed, in milliseconds; `null`: any.
             */
            idle_timeout_ms?: number | null;
            /** @description The protections around it. */
            isolation: components["schemas"]["Isolation"];
            /** @description The labels. */
            labels: {
                [key: string]: string;
            };
            /**
             * @description The life of the sandbox: another text after every wake. Empty in lists of Docker's
             *     sandboxes, which do not look it up.
             */
            life: string;
            /** @description The name in its pool. */
            name: string;
            /** @description The pool. */
            pool: string;
            /** @description The provider. */
            provider: string;
            /** @description The spec it was made from, without the values of variables and the contents of files. */
            spec: components["schemas"]["SandboxSpec"];
            /** @description The status. */
            status: components["schemas"]["SandboxStatus"];
            /** @description The working directory. */
            workdir: string;
        };
        /** @description Some sandboxes of a pool, oldest first. */
        SandboxList: {
            /** @description The `cursor` to send for those that follow; `null`: there are none. */
            next_cursor?: string | null;
            /** @description The sandboxes. */
            sandboxes: components["schemas"]["SandboxAnswer"][];
        };
        /** @description The spec of a sandbox to create. Every field has a default. */
        SandboxSpec: {
            /** @description Options that only a provider with a container engine has; others refuse all but the default. */
            container?: components["schemas"]["ContainerSpec"];
            /**
             * @description Rules on which public addresses and which others it may reach, with [`NetworkMode::Egress`].
             *     By default all public ones.
             */
            egress?: components["schemas"]["EgressRules"];
            /** @description Variables for every command. */
            env?: {
                [key: string]: string;
            };
            /** @description The host name inside; by default the name. */
            hostname?: string | null;
            /** @description The id; by default a new one. */
            id?: string | null;
            /**
             * @description The image it is made of: `host`, the name of an image such as `node:22`, a directory, a
             *     rootfs tarball. By default the provider's default.
             */
            image?: string | null;
            /** @description Labels to select by. */
            labels?: {
                [key: string]: string;
            };
            /** @description The deadlines. */
            lifecycle?: components["schemas"]["Lifecycle"];
            /** @description Limits on what it may use. */
            limits?: components["schemas"]["Limits"];
            /** @description Files, directories and variables that are put into it before its first use. */
            manifest?: components["schemas"]["Manifest"];
            /** @description Facts that the caller wants to find again. */
            metadata?: {
                [key: string]: string;
            };
            /** @description Folders of the host inside. */
            mounts?: components["schemas"]["Mount"][];
            /** @description The name; by default made from the id. */
            name?: string | null;
            /**
             * @description The network that it may reach. In JSON also `true` for `egress`, `false` for `none`, and
             *     `{"mode": …}`. By default `"none"`.
             */
            network?: components["schemas"]["NetworkMode"];
            /** @description Protections without which the create must fail. */
            require?: components["schemas"]["Requirement"][];
            /** @description Restrictions on its programs. */
            security?: components["schemas"]["Security"];
            /** @description The snapshot whose files it begins with, in place of an image. */
            snapshot?: string | null;
            /**
             * @description The user who runs commands: by default the image's, else `user` (1000); `root` only with an
             *     identity range. A name or a number, with another group behind a colon.
             */
            user?: string | null;
            /** @description The directory in which commands start; by default the image's, else `/workspace`. */
            workdir?: string | null;
            /** @description The home of the working directory's files. */
            workspace?: components["schemas"]["WorkspaceSpec"];
        };
        /**
         * @description The status of a sandbox.
         * @enum {string}
         */
        SandboxStatus: "creating" | "running" | "sleeping" | "dead" | "damaged";
        /** @description Restrictions on the programs in a sandbox. The defaults are what native always does. */
        Security: {
            /** @description Capabilities to drop: `ALL`, or names such as `CAP_CHOWN` beyond what the provider always drops. By default `["ALL"]`. */
            drop_capabilities?: string[];
            /** @description `no_new_privs`; setuid programs gain nothing. By default `true`. */
            no_new_privileges?: boolean;
            /** @description The root file system can't be written to; the workspace, home, `/tmp`, `/var/tmp`, `/run` and `/dev/shm` still can. By default `false`. */
            readonly_rootfs?: boolean;
        };
        /** @description A program that runs whenever its sandbox is awake. */
        Service: {
            /** @description A shell line. */
            command: string;
            /** @description The directory in which it starts, resolved against the working directory. */
            cwd?: string | null;
            /** @description Variables layered over the sandbox's. */
            env?: {
                [key: string]: string;
            };
        };
        /** @description The session of a request. */
        SessionAnswer: {
            /** @description The key's name; `null`: not signed in, or no key is needed. */
            name?: string | null;
            /** @description The server needs a key. */
            needs_key: boolean;
            /** @description The pools that may be used; empty where the request is not signed in. */
            pools: string[];
            /**
             * @description The proof that the page sends in the header `Eyot-Page` from now on; told once, in the
             *     answer to a sign-in.
             */
            proof?: string | null;
            /** @description The request is let in. */
            signed_in: boolean;
        };
        /** @description A sign-in. */
        SessionBody: {
            /** @description An API key. */
            key: string;
        };
        /** @description A signal to send. */
        SignalBody: {
            /**
             * Format: int32
             * @description By its Linux number: 15 asks a process to end. Without one, or without a body, the whole process tree is killed. For a
             *     process that has ended this changes nothing, and succeeds.
             */
            signal?: number | null;
        };
        /** @description A snapshot. */
        SnapshotInfo: {
            /**
             * Format: int64
             * @description The time at which it was taken, in milliseconds since 1970.
             */
            created_ms: number;
            /**
             * @description The id.
             * @example sn_01a21e86dcff438e9a3ed9ae7c2d4c55
             */
            id: string;
            /** @description Labels to select by. */
            labels: {
                [key: string]: string;
            };
            /** @description The name, unique in its pool. */
            name?: string | null;
            /**
             * Format: int64
             * @description The bytes on the disk that only this snapshot adds to its parent. `None`: they were not counted yet, or can't be.
             */
            own_bytes?: number | null;
            /** @description The snapshot that the sandbox's files came from, which may be gone. */
            parent?: string | null;
            /** @description The pool that it belongs to. */
            pool?: string | null;
            /** @description The sandbox that it was taken of, which may be gone. */
            sandbox: string;
            /** @description The name that the sandbox had. */
            sandbox_name: string;
            /**
             * Format: int64
             * @description The bytes on the disk of the snapshots below it, which it shares with others. `None`: those of one are not known.
             */
            shared_bytes?: number | null;
            /** @description The spec that the sandbox was made from: what a fork is made from, too. */
            spec: components["schemas"]["SandboxSpec"];
        };
        /** @description The snapshots of a pool. */
        SnapshotList: {
            /** @description The snapshots, oldest first. */
            snapshots: components["schemas"]["SnapshotInfo"][];
        };
        /** @description Options of a snapshot. */
        SnapshotOptions: {
            /** @description Refuses a sandbox that runs, even one without work, instead of putting it to sleep for it. By default `false`. */
            asleep_only?: boolean;
            /** @description It is only there to make forks from: it is not listed, and is gone once nothing lies above it. By default `false`. */
            for_forks?: boolean;
            /** @description The id. By default one is generated. */
            id?: string | null;
            /** @description Labels to select by. */
            labels?: {
                [key: string]: string;
            };
            /** @description The name, unique among the snapshots and sandboxes of the pool. */
            name?: string | null;
            /** @description Ends the commands that run, as sleep does. Otherwise a sandbox that works is refused. By default `false`. */
            stop?: boolean;
        };
        /** @description A snapshot that was taken. */
        SnapshotTaken: components["schemas"]["SnapshotInfo"] & {
            /** @description The commands that were ended for it. Services, which start again, are not among them. */
            stopped: string[];
        };
        /** @description A client's request to a running command. */
        SocketControl: "kill" | "expire" | {
            /**
             * Format: int32
             * @description Send its process group (its terminal's foreground group) this signal, by its Linux number.
             */
            signal: number;
        } | {
            /** @description Gives its terminal this size. */
            resize: components["schemas"]["PtySize"];
        };
        /** @description A message about a command to its client, beside its output. */
        SocketEvent: "started" | {
            /** @description So many bytes of standard input more may be sent. */
            credit: number;
        } | {
            /** @description A control failed with this problem; the command runs on. */
            refused: components["schemas"]["Problem"];
        } | {
            /** @description It ended. Nothing follows. */
            end: components["schemas"]["ExecAnswer"];
        } | {
            /** @description It could not be run, or its sandbox is gone. Nothing follows. */
            problem: components["schemas"]["Problem"];
        };
        /** @description A process to start. One of `command` and `argv` is there. */
        StartBody: {
            /** @description A program and its arguments. */
            argv?: string[] | null;
            /** @description Shell source. */
            command?: string | null;
            /** @description The working directory, resolved against the sandbox's own. */
            cwd?: string | null;
            /** @description Variables layered over the sandbox's. */
            env?: {
                [key: string]: string;
            };
            pty?: components["schemas"]["PtySize"] | null;
            /** @description The standard input, or its beginning, as text: at most 64 KiB. Without any it reads end of file. */
            stdin?: string | null;
            /** @description The same as base64. */
            stdin_base64?: string | null;
            /** @description More of its input is written later. By default `false`. */
            stdin_follows?: boolean;
            /**
             * Format: int64
             * @description It is killed when it has not ended after so many milliseconds; by default never.
             */
            timeout_ms?: number | null;
            /** @description The user who runs it; by default the sandbox's user. */
            user?: string | null;
        };
        /** @description Input for a started process. */
        StdinBody: {
            /** @description End of file comes behind it. By default `false`. */
            end?: boolean;
            /** @description The input, as text: at most 64 KiB. */
            stdin?: string | null;
            /** @description The same as base64. */
            stdin_base64?: string | null;
        };
        /** @description A terminal. */
        TerminalAnswer: {
            /** @description Somebody is connected to it. */
            attached: boolean;
            /** @description The command that runs in it; `null`: a shell. */
            command?: string | null;
            /** @description The id. */
            id: string;
            /**
             * Format: int64
             * @description The time at which it was opened, in milliseconds since 1970 (UTC).
             */
            started_ms: number;
        };
        /** @description A terminal to open. */
        TerminalBody: {
            /** @description A shell line; by default bash, or sh where there is none. */
            command?: string | null;
            /** @description The working directory; by default the sandbox's. */
            cwd?: string | null;
            /** @description The size of the terminal. */
            size: components["schemas"]["PtySize"];
        };
        /** @description The terminals of a sandbox that can be connected to. */
        TerminalList: {
            /** @description The oldest first. */
            terminals: components["schemas"]["TerminalAnswer"][];
        };
        /** @description The answer of a tool. */
        ToolAnswer: {
            /** @description The pieces that the model reads. */
            content: string[];
            /** @description It says what went wrong. */
            is_error: boolean;
            /** @description The same as data, where the tool has it. */
            structured?: Record<string, never> | null;
        };
        /** @description A copy between sandboxes of a pool. */
        TransferBody: {
            /** @description The sandbox that has it. */
            from: string;
            /** @description The path in the one. */
            from_path: string;
            /** @description Directories are copied with everything below them. */
            recursive?: boolean;
            /** @description The sandbox that gets it; made if need be. */
            to: string;
            /** @description The path in the other; not a directory to put it in. Parents are made. */
            to_path: string;
        };
        /** @description The amount that was copied. */
        Transferred: {
            /**
             * Format: int64
             * @description Their bytes.
             */
            bytes: number;
            /**
             * Format: int64
             * @description Regular files.
             */
            files: number;
        };
        /** @description The result of unpacking. */
        Unpacked: {
            /**
             * Format: int64
             * @description The number of entries that were made.
             */
            entries: number;
        };
        /** @description An operation that a provider can't do. */
        Unsupported: {
            /** @description The operation. */
            operation: string;
            /** @description The options with which it can't; empty: not at all. */
            options: string[];
            /** @description The provider. */
            provider: string;
        };
        /** @description A sandbox's use of resources now. A figure is absent if the backend does not know it. */
        Usage: {
            /**
             * Format: int64
             * @description Processor time used so far by live and reaped processes, in milliseconds.
             */
            cpu_ms?: number | null;
            /**
             * Format: int64
             * @description Bytes on disk that the sandbox wrote.
             */
            disk_bytes?: number | null;
            /**
             * Format: int64
             * @description Since the last activity, in milliseconds.
             */
            idle_ms?: number | null;
            /**
             * Format: int64
             * @description Memory in bytes: where a control group holds the limit, all that counts towards it (files in memory and the
             *     cache of files included); else the resident memory of all processes.
             */
            memory_bytes?: number | null;
            /**
             * Format: int64
             * @description The most memory in bytes that there was at once, where a control group counts it.
             */
            memory_peak_bytes?: number | null;
            /**
             * Format: int64
             * @description Live processes, the guest not counted.
             */
            processes?: number | null;
            /**
             * Format: int64
             * @description Since the sandbox was made, in milliseconds.
             */
            uptime_ms?: number | null;
        };
        /** @description A sandbox's use of resources now. */
        UsageAnswer: {
            /** @description The figures; those that the provider does not know are absent. */
            usage: components["schemas"]["Usage"];
        };
        /**
         * @description The user that the kernel counts a sandbox by: its queued signals, timers, inotify instances and message queues.
         * @enum {string}
         */
        UserCounts: "own" | "shared";
        /** @description The versions of a server and its API. */
        Version: {
            /** @description The API's. */
            api: string;
            /** @description Eyot's. */
            version: string;
        };
        /** @description The calls of a run that wait for its caller. */
        WaitingToolCalls: {
            /** @description The calls. */
            tool_calls: components["schemas"]["ClientToolCall"][];
        };
        /** @description The home of the working directory's files. */
        WorkspaceSpec: {
            /** @enum {string} */
            mode: "ephemeral";
        } | {
            /** @description Destroying the sandbox removes the directory too. */
            destroy_on_session_destroy?: boolean;
            /** @description The directory's id: 1 to 63 of `a-z`, `0-9`, `_`, `.`, `-`, beginning with a letter or a digit. */
            id: string;
            /** @enum {string} */
            mode: "persistent";
        };
        /** @description The size of a file after a write. */
        Written: {
            /**
             * Format: int64
             * @description In bytes.
             */
            size: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    server_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures, as OpenMetrics 1.0 has them */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    tools_call_pool: {
        parameters: {
            query?: never;
            header?: {
                /** @description The pool; by default the key's own */
                "eyot-pool"?: string | null;
            };
            path: {
                /**
                 * @description The tool's name
                 * @example shell
                 */
                tool: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "echo hello",
                 *       "sandbox": "dev"
                 *     }
                 */
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The agents of a server. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_begin: {
        parameters: {
            query?: {
                /** @description The pool of the run. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The agent
                 * @example reviewer
                 */
                agent: string;
                /**
                 * @description Its instance. Runs of one instance share its sandbox and its conversations
                 * @example pr7
                 */
                instance: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "payload": {
                 *         "prompt": "Say hello."
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["RunBody"];
            };
        };
        responses: {
            /** @description The run has begun */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    server_capabilities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The capabilities of the server's sandboxes, and the protections around one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CapabilitiesAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_commit: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": "good",
                 *       "reference": "app:1"
                 *     }
                 */
                "application/json": components["schemas"]["CommitOptions"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageCommitted"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_diff: {
        parameters: {
            query: {
                /** @description The pool. By default the key's first pool. */
                pool?: string;
                /**
                 * @description The first side: a snapshot or, if there is none of that name, the present files of a sandbox; each by name or id.
                 *     `base:` and a sandbox means the files below its present changes: those of its last snapshot, or those that it began with.
                 * @example dev
                 */
                from: string;
                /**
                 * @description The second side, likewise. By default `from` names a sandbox, and the answer is what it has changed since its last
                 *     snapshot.
                 */
                to?: string;
                /** @description Only what lies here and below. By default `/`. */
                path?: string;
                /** @description Adds unified diffs of files that are text. By default `false`. */
                text?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The differences between two sides. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileChanges"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    events_list: {
        parameters: {
            query?: {
                /** @description Only events of this pool. By default those of every pool that the key opens. */
                pool?: string;
                /**
                 * @description Only events of this sandbox: NAME, POOL/NAME or its id. A name without a pool is one in
                 *     `pool`, or in the key's first pool.
                 */
                sandbox?: string;
                /**
                 * @description Number of the first event to send. By default the first that is kept. The header
                 *     `Last-Event-ID` has the same use: the stream goes on behind the event of that number.
                 */
                from_seq?: number;
                /** @description Keeps the stream open and sends new events as they happen. */
                follow?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What happened */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_fork: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "count": 2,
                 *       "from": "good"
                 *     }
                 */
                "application/json": components["schemas"]["ForkOptions"];
            };
        };
        responses: {
            /** @description The sandboxes that were made of something. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forks"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    server_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer of a server that is up. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    images_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Images of a server. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    images_remove: {
        parameters: {
            query: {
                /**
                 * @description The image's name.
                 * @example node:22
                 */
                name: string;
                /** @description Removes the name even if sandboxes are made over the image. They keep their layers. */
                force?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The removed items. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PruneReport"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    images_import: {
        parameters: {
            query?: {
                /**
                 * @description The image's name. By default it has the name in the archive. A tarball of a root file system
                 *     has none.
                 */
                name?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The archive */
        requestBody?: {
            content: {
                "application/x-tar": string;
            };
        };
        responses: {
            /** @description Images of a server. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImageList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    images_pull: {
        parameters: {
            query: {
                /**
                 * @description The image's name, such as `node:22` or `registry.example/team/app:1`.
                 * @example node:22
                 */
                name: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The progress, and the image */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    server_document: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
        };
    };
    pools_list: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The pools that a key opens; the first is its own. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoolList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pools_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The pool
                 * @example default
                 */
                pool: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A pool. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoolAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pools_close: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The pool
                 * @example default
                 */
                pool: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pools_make: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The pool
                 * @example default
                 */
                pool: string;
                /**
                 * @description Its name in the pool
                 * @example web
                 */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "sleep_after_ms": 600000
                 *     }
                 */
                "application/json": components["schemas"]["MemberBody"];
            };
        };
        responses: {
            /** @description The result of a create. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoolCreated"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    pools_transfer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The pool
                 * @example default
                 */
                pool: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": "dev",
                 *       "from_path": "hello.txt",
                 *       "to": "web",
                 *       "to_path": "hello.txt"
                 *     }
                 */
                "application/json": components["schemas"]["TransferBody"];
            };
        };
        responses: {
            /** @description The amount that was copied. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Transferred"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_runs: {
        parameters: {
            query?: {
                /** @description Only runs of this pool. By default those of every pool that the key opens. */
                pool?: string;
                /** @description Only runs of this agent. */
                agent?: string;
                /** @description Only runs of this instance. */
                instance?: string;
                /** @description Only runs in this state: `active`, `completed` or `errored`. */
                status?: "active" | "completed" | "errored";
                /** @description Continues a list: the `next_cursor` of the previous answer. */
                cursor?: string;
                /** @description Number of runs to return at most, 1 to 1,000; by default 100. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Runs, the newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_abort: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "not needed any more"
                 *     }
                 */
                "application/json": components["schemas"]["AbortBody"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_run_events: {
        parameters: {
            query?: {
                /** @description Only events behind the one with this number. */
                after?: number;
                /** @description Only events of these types, separated by commas. */
                types?: string;
                /** @description Number of events to return at most, 1 to 1,000; by default 100. */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events of a run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunEvents"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run goes on */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_stream: {
        parameters: {
            query?: never;
            header?: {
                /** @description The number of the last event that came */
                "last-event-id"?: number | null;
            };
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events of the run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_waiting: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The calls of a run that wait for its caller. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WaitingToolCalls"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    agents_answer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The id of the run.
                 * @example run_01JEXAMPLE
                 */
                run: string;
                /**
                 * @description The id of the call
                 * @example call_1
                 */
                call: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "content": "It rains."
                 *     }
                 */
                "application/json": components["schemas"]["ClientToolAnswer"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_list: {
        parameters: {
            query?: {
                /** @description The pool. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Only sandboxes with this label, `key=value`, or `key` with any value. Separate several labels by
                 *     commas; all must match.
                 */
                label?: string;
                /** @description Continues a list: the `next_cursor` of the previous answer. */
                cursor?: string;
                /** @description Number of sandboxes to return at most, 1 to 1,000; by default 100. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Some sandboxes of a pool, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_create: {
        parameters: {
            query?: {
                /** @description The pool. By default the key's first pool. The body may name it instead. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "get_or_create": true,
                 *       "spec": {
                 *         "limits": {
                 *           "memory_mib": 1024
                 *         },
                 *         "name": "dev",
                 *         "network": "egress"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateSandbox"];
            };
        };
        responses: {
            /** @description It was there already */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description A sandbox. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_get: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A sandbox. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_destroy: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Undoes a create that its client could not finish: a persistent workspace that existed before
                 *     is kept, whatever the spec says. Only for a sandbox that runs; by default `false`.
                 */
                abandon?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_patch: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "labels": {
                 *         "job": "42"
                 *       },
                 *       "lifecycle": {
                 *         "ttl_ms": 3600000
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PatchSandbox"];
            };
        };
        responses: {
            /** @description A sandbox. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    network_rules: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The hosts that a sandbox may connect to. Without any rule: every public address. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EgressRules"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    network_set_rules: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "allow": [
                 *         "api.example.com:443",
                 *         "*.cdn.example.com:443"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["EgressRules"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    network_decisions: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description Number of remembered decisions to send first, at most 1,000. By default all. */
                last?: number;
                /** @description Keeps the stream open and sends new decisions as they are made. */
                follow?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was decided */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exec_exec: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "echo hello"
                 *     }
                 */
                "application/json": components["schemas"]["ExecBody"];
            };
        };
        responses: {
            /** @description The output and the outcome of a command. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExecAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exec_exec_socket: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exec_exec_stream: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description How long the command goes on when nobody reads its stream, and how long its end is kept, in milliseconds: 0 to 600,000;
                 *     by default 30,000.
                 */
                linger_ms?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "echo hello"
                 *     }
                 */
                "application/json": components["schemas"]["ExecBody"];
            };
        };
        responses: {
            /** @description What the command writes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exec_exec_again: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: {
                /** @description The id of the last event that came */
                "last-event-id"?: number | null;
            };
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /** @description What its event `started` says. */
                exec: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the command writes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exec_exec_end: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /** @description What its event `started` says. */
                exec: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_exists: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer whether something is there. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Exists"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_read: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
                /** @description First byte to return; by default 0. A `Range` header has the same use. */
                offset?: number;
                /** @description Number of bytes to return at most; by default all. */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The bytes of the range */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_write: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
                /**
                 * @description Treatment of an existing file: `replace` (the default), `append`, or `create_new`, which
                 *     refuses it.
                 */
                mode?: string;
                /** @description Permission bits, as a decimal number; by default 420 (`0o644`). */
                permissions?: number;
                /**
                 * @description Largest size in bytes that the file may reach. A larger write is refused, and nothing is
                 *     changed.
                 */
                max_file_bytes?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        /** @description The bytes */
        requestBody?: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description The size of a file after a write. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Written"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_remove: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
                /** @description Removes a directory and everything below it. */
                recursive?: boolean;
                /** @description Succeeds if the path does not exist. */
                force?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_glob: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description A glob such as `**\/*.rs`, relative to `path`. */
                pattern: string;
                /** @description Directory to search; by default the working directory. */
                path?: string;
                /** @description Includes names that begin with a dot. */
                hidden?: boolean;
                /** @description Number of paths to return at most; by default 1,000. */
                max_results?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of glob: files and symbolic links (never followed), sorted by path. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GlobResult"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_grep: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description A regular expression. */
                pattern: string;
                /** @description File or directory to search, with everything below it; by default the working directory. */
                path?: string;
                /** @description Takes the pattern as literal text. */
                literal?: boolean;
                /** @description Ignores upper and lower case. */
                ignore_case?: boolean;
                /** @description Searches only files that match this glob. */
                include?: string;
                /** @description Number of lines to return at most; by default 1,000. */
                max_matches?: number;
                /** @description Length in bytes from which a line is cut; by default 500. */
                max_line_bytes?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result of grep, sorted by path and line. Binary files (with a NUL in their beginning) are */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GrepResult"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_list: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example .
                 */
                path: string;
                /**
                 * @description `name` (the default), or `directory`: the order in which the file system returns the
                 *     entries.
                 */
                order?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entries of a directory. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_live: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Everything that runs in a sandbox but its guest. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LiveProcesses"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_mkdir: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example data
                 */
                path: string;
                /** @description Creates missing parents, and succeeds if the directory exists. */
                recursive?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_open: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A sandbox. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ports_published: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The published ports. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedPorts"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ports_connect: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description 1 to 65535.
                 * @example 8000
                 */
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ports_open: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description 1 to 65535.
                 * @example 8000
                 */
                port: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ttl_ms": 3600000
                 *     }
                 */
                "application/json": components["schemas"]["PreviewBody"];
            };
        };
        responses: {
            /** @description The addresses of a preview of a port. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PreviewAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ports_close: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description 1 to 65535.
                 * @example 8000
                 */
                port: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_list: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Started processes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_start: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "while read -r name; do echo hello $name; done",
                 *       "stdin_follows": true
                 *     }
                 */
                "application/json": components["schemas"]["StartBody"];
            };
        };
        responses: {
            /** @description The facts about a started process. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessInfo"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_logs: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description `stdout` or `stderr`; by default both. */
                stream?: string;
                /**
                 * @description First byte to return, counted from the start of the output; by default 0. A `Last-Event-ID`
                 *     header has the same use.
                 */
                offset?: number;
                /** @description Begins this many bytes before the end instead. */
                tail_bytes?: number;
                /** @description Begins this many lines before the end instead. */
                tail_lines?: number;
                /** @description Number of bytes to return at most; by default 1 MiB, with `follow` no limit. */
                limit_bytes?: number;
                /** @description Keeps the stream open until the process ends. */
                follow?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description The process's id, such as `p1`.
                 * @example p1
                 */
                process: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_signal: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description The process's id, such as `p1`.
                 * @example p1
                 */
                process: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signal": 15
                 *     }
                 */
                "application/json": components["schemas"]["SignalBody"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_write_stdin: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description The process's id, such as `p1`.
                 * @example p1
                 */
                process: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "stdin": "world\n"
                 *     }
                 */
                "application/json": components["schemas"]["StdinBody"];
            };
        };
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    processes_wait: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description Does not count as activity: the sandbox may fall asleep meanwhile. */
                observe?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /**
                 * @description The process's id, such as `p1`.
                 * @example p1
                 */
                process: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The facts about a started process. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessInfo"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_rename: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description The path to move. */
                from: string;
                /** @description The new path. */
                to: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_roll_back: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "snapshot": "good"
                 *     }
                 */
                "application/json": components["schemas"]["RollbackOptions"];
            };
        };
        responses: {
            /** @description The result of a rollback. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RollbackDone"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_sleep: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_take: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "good",
                 *       "stop": true
                 *     }
                 */
                "application/json": components["schemas"]["SnapshotOptions"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotTaken"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_stat: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The facts about a file. Everything but the two required facts is absent when the backend does */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileStat"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    terminals_list: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The terminals of a sandbox that can be connected to. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TerminalList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    terminals_open: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "size": {
                 *         "cols": 80,
                 *         "rows": 24
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["TerminalBody"];
            };
        };
        responses: {
            /** @description A terminal. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TerminalAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    terminals_end: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /** @description Its id. */
                terminal: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    terminals_attach: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
                /** @description Its id. */
                terminal: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_tree_out: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /**
                 * @description Absolute, or relative to the sandbox's working directory.
                 * @example hello.txt
                 */
                path: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tar stream */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_tree_in: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description An existing directory. */
                path: string;
                /** @description Largest size in bytes of all files together; by default 4 GiB. */
                max_total_bytes?: number;
                /** @description Largest number of entries; by default 1,000,000. */
                max_entries?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        /** @description The tar stream */
        requestBody?: {
            content: {
                "application/x-tar": string;
            };
        };
        responses: {
            /** @description The result of unpacking. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Unpacked"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_usage: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A sandbox's use of resources now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    sandboxes_wake: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A sandbox. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    files_watch: {
        parameters: {
            query: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
                /**
                 * @description Confines every path of the request to this directory: neither `..` nor a symbolic link leads
                 *     out of it.
                 */
                beneath?: string;
                /** @description Absolute, or relative to the sandbox's working directory. */
                path: string;
                /** @description Watches everything below a directory too; by default `true`. */
                recursive?: boolean;
                /** @description Number of directories to watch at most, 1 to 100,000; by default 10,000. */
                max_directories?: number;
            };
            header?: never;
            path: {
                /**
                 * @description The sandbox's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example dev
                 */
                sandbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What happens */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    session_who: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The session of a request. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    session_sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SessionBody"];
            };
        };
        responses: {
            /** @description The session of a request. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    session_sign_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_list: {
        parameters: {
            query?: {
                /** @description The pool. By default the key's first pool. */
                pool?: string;
                /** @description Counts the sizes that are not known yet, which takes a walk through the files. By default `false`. */
                sizes?: boolean;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The snapshots of a pool. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotList"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_get: {
        parameters: {
            query?: {
                /** @description The pool. By default the key's first pool. The body may name it instead. */
                pool?: string;
                /** @description Includes the values of environment variables, which may be secret. */
                show_env?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description The snapshot's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example good
                 */
                snapshot: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A snapshot. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotInfo"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    snapshots_remove: {
        parameters: {
            query?: {
                /** @description The pool in which a name is looked up. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description The snapshot's id, its name in the pool, or POOL/NAME with the slash as `%2F`.
                 * @example good
                 */
                snapshot: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    tools_declare: {
        parameters: {
            query?: {
                /** @description `mcp` (the default), `anthropic`, `openai`, … */
                format?: string;
            };
            header?: never;
            path: {
                /**
                 * @description `pool`, `workspace`, `coding`, …
                 * @example pool
                 */
                toolset: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    tools_call: {
        parameters: {
            query?: {
                /** @description The pool. By default the key's first pool. */
                pool?: string;
            };
            header?: never;
            path: {
                /**
                 * @description `pool`, `workspace`, `coding`, …
                 * @example pool
                 */
                toolset: string;
                /**
                 * @description The tool's name
                 * @example shell
                 */
                tool: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "command": "echo hello",
                 *       "sandbox": "dev"
                 *     }
                 */
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description The answer of a tool. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolAnswer"];
                };
            };
            /** @description Not now: the sandbox sleeps or is dead, or the provider cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Refused. The problem says why, and what can be done. */
            "4XX": {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    server_version: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The versions of a server and its API. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
        };
    };
}
