# Writes what it reads to a new file. The second argument is its path.
PATH=/usr/local/bin:/usr/bin:/bin
printf 'ok\n'
umask 077
cat >"$2" 2>/dev/null || exit 3
stat -c %s -- "$2"
