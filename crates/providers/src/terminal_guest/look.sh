# Looks for the guest of a directory. Prints `here`, `ended`, or `gone` if there is no such directory. With `end` as its second
# argument it ends the guest, and removes the directory and the upload, which is the third argument.
dir=$1 upload=$3
[ "$2" = end ] && rm -f -- "$upload"
if [ ! -d "$dir" ]; then
  echo gone
  exit 0
fi
found=ended
for process in /proc/[0-9]*; do
  # Its number may be another process' by now, so its arguments are compared.
  [ "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" = "$dir/eyot-guest beside $dir " ] || continue
  # A guest that was killed leaves its reapers, one for each command, which differ from it by their name alone.
  [ "$(cat "$process/comm" 2>/dev/null)" = eyot-reaper ] || found=here
  [ "$2" = end ] && kill -s TERM "${process#/proc/}" 2>/dev/null
done
[ "$2" = end ] && rm -rf -- "$dir"
echo "$found"
