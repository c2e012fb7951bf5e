# Prints `ended` once a process has ended, also if something holds its output open. The arguments are the life of the sandbox
# and its number. It stops when its input ends, and in another life.
PATH=/usr/local/bin:/usr/bin:/bin
[ "$1" = "$life" ] || exit 0
while :; do
  stat=
  # A name may have a line's end in it.
  { read -r -d '' stat <"/proc/$2/stat"; } 2>/dev/null
  if [ -n "$stat" ]; then
    state=${stat##*) }
    [ "${state%% *}" = Z ] && break
  else
    # Too many open files are no end.
    [ -e "/proc/$2" ] || break
  fi
  read -r -t 0.05 _
  [ $? -gt 128 ] || exit 0
done
printf 'ended\n'
