# Changes the size of the terminal of a process. The arguments are its start, its number, the rows and the columns.
PATH=/usr/local/bin:/usr/bin:/bin
if [ "$1" != "$life" ]; then
  printf 'not_found\n'
  exit 0
fi
stty rows "$3" cols "$4" <"/proc/$2/fd/0" 2>/dev/null || { printf 'unsupported\n'; exit 0; }
printf 'ok\n'
