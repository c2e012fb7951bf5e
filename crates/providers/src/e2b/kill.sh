# Kills a process with all that it has started and that has still a parent among them. The arguments are the life of the sandbox
# and its number. Each is stopped before its children are looked for, so that it starts no more.
PATH=/usr/local/bin:/usr/bin:/bin
if [ "$1" != "$life" ]; then
  printf 'sleeping\n'
  exit 0
fi
tree=("$2")
for ((next = 0; next < ${#tree[@]}; next++)); do
  parent=${tree[next]}
  kill -s STOP -- "$parent" 2>/dev/null
  for file in /proc/[0-9]*/stat; do
    stat=
    # A name may have a line's end in it.
    { read -r -d '' stat <"$file"; } 2>/dev/null
    rest=${stat##*) }
    set -- $rest
    [ "$2" = "$parent" ] && tree+=("${stat%% *}")
  done
done
kill -s KILL -- "${tree[@]}" 2>/dev/null
printf 'ok\n'
