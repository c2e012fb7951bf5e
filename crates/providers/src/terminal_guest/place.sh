# Makes room for a guest: its directory, and the other directories that are named, those of commands first. Prints `ok`, or the
# word of a failure.
dir=$1
shift
machine=$(uname -m)
if [ "$machine" != x86_64 ]; then
  echo "machine $machine"
  exit 0
fi
for other; do
  [ -d "$other" ] || mkdir -p -- "$other" 2>/dev/null && continue
  # The user of a vendor's own images may become root.
  { sudo -n mkdir -p -- "$other" && sudo -n chown -- "$(id -u):$(id -g)" "$other"; } 2>/dev/null && continue
  echo workdir
  exit 0
done
umask 077
[ -d "$dir" ] || mkdir -- "$dir" 2>/dev/null || { echo directory; exit 0; }
echo ok
