# Runs a command. The first line of its output is `ok` or the kind of an error; the command's own output follows.
# The arguments are the life of the sandbox, the directory, the number of the command's variables, and the command. The
# variables have other names on their way here, so that they are the command's alone.
its_life=$1 dir=$2 count=$3
shift 3
variables=()
for ((number = 0; number < count; number++)); do
  name=EYOT_VARIABLE_$number
  variables+=("${!name}")
  unset "$name"
done

fail() {
  printf '%s\n' "$1"
  exit 0
}

[ "$its_life" = "$life" ] || fail sleeping
if ! cd -P -- "$dir" 2>/dev/null; then
  while [ ! -e "$dir" ] && [ "$dir" != / ]; do
    dir=${dir%/*}
    dir=${dir:-/}
    missing=1
  done
  if [ ! -d "$dir" ]; then fail not_directory; fi
  if [ ! -x "$dir" ]; then fail permission; fi
  [ -n "$missing" ] && fail not_found
  fail permission
fi
PATH=$HOME/.local/bin:$PATH
for variable in "${variables[@]}"; do
  case $variable in
    PATH=*) PATH=${variable#PATH=} ;;
    HOME=*) HOME=${variable#HOME=} ;;
  esac
done
case $1 in
  */*)
    [ -e "$1" ] || fail not_found
    [ -f "$1" ] && [ -x "$1" ] || fail permission
    ;;
  *)
    type -P -- "$1" >/dev/null || fail not_found
    ;;
esac
env=$(PATH=/usr/local/bin:/usr/bin:/bin type -P env)
printf 'ok\n'
case $1 in
  # `env` would take it for a variable.
  *=*) exec "$env" -u OLDPWD -- "${variables[@]}" /bin/sh -c 'exec "$@"' sh "$@" ;;
esac
exec "$env" -u OLDPWD -- "${variables[@]}" "$@"
