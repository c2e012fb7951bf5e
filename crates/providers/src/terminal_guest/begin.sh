# Starts the guest of a directory, from an upload of so many bytes, unless it is started. Prints `ok`, or the word of a failure.
dir=$1 upload=$2 size=$3
umask 077
if [ ! -S "$dir/guest.sock" ]; then
  if [ -f "$upload" ]; then
    [ "$(wc -c <"$upload")" -eq "$size" ] || { echo upload; exit 0; }
    mv -f -- "$upload" "$dir/eyot-guest" || { echo directory; exit 0; }
  fi
  chmod 500 -- "$dir/eyot-guest" 2>/dev/null || { echo upload; exit 0; }
  # A terminal starts one program, without arguments.
  printf '#!/bin/sh\nexec "%s/eyot-guest" terminal "%s"\n' "$dir" "$dir" >"$dir/stream"
  chmod 500 -- "$dir/stream"
  # Of no shell's, so that it ends with none.
  own_session=$(command -v setsid)
  ($own_session "$dir/eyot-guest" beside "$dir" </dev/null >/dev/null 2>&1 &)
fi
tries=0
while [ ! -S "$dir/guest.sock" ]; do
  tries=$((tries + 1))
  [ "$tries" -le 200 ] || { echo guest; exit 0; }
  sleep 0.05
done
echo ok
