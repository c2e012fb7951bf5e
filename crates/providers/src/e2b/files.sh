# The files of a sandbox, as its user sees them. The first line of the output is `ok` or the kind of an error; what
# was asked for follows. The arguments are the life of the sandbox, the operation, and what it is about. Paths are
# absolute and normalised.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
# The most symbolic links that the kernel follows.
most_links=40
# The longest wait for another append to the same file, in seconds.
lock_patience=10

fail() {
  printf '%s\n' "$1"
  exit 0
}

# Ends with the reason why there is nothing at a path, unless there is something.
reach() {
  [ -e "$1" ] && return
  local at= rest=${1#/}
  while [ -n "$rest" ]; do
    if [ -d "${at:-/}" ]; then
      [ -x "${at:-/}" ] || fail permission
    elif [ -e "$at" ]; then
      fail not_directory
    else
      lost "$at"
    fi
    at=$at/${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
  done
  lost "$at"
}

# Ends with the reason why a path leads nowhere: it is not there, or its links go round.
lost() {
  local at=$1 hops=0 target
  while [ -L "$at" ]; do
    hops=$((hops + 1))
    [ "$hops" -le "$most_links" ] || fail invalid
    follow "$at"
    at=$target
  done
  fail not_found
}

# Sets `target` to what a link leads to.
follow() {
  target=$(readlink -n -- "$1" && printf x)
  target=${target%x}
  case $target in /*) ;; *) target=${1%/*}/$target ;; esac
}

# Ends unless a directory can be written to.
writable() {
  reach "$1"
  [ -d "$1" ] || fail not_directory
  [ -w "$1" ] && [ -x "$1" ] || fail permission
}

# Sets `dir` and `base`.
split() {
  dir=${1%/*}
  dir=${dir:-/}
  base=${1##*/}
}

op_stat() {
  reach "$1"
  local kind=- facts
  [ -L "$1" ] && kind=l
  if ! facts=$(stat -L -c '%f %s %.3Y' -- "$1" 2>/dev/null); then
    # It was removed just after it was found.
    reach "$1"
    fail permission
  fi
  printf 'ok\n%s %s' "$kind" "$facts"
}

op_exists() {
  reach "$1"
  printf 'ok\n'
}

op_list() {
  reach "$1"
  [ -d "$1" ] || fail not_directory
  [ -r "$1" ] && cd -P -- "$1" 2>/dev/null || fail permission
  printf 'ok\n'
  exec find . -mindepth 1 -maxdepth 1 -ignore_readdir_race -printf '%y %s %P\0'
}

# A file from a byte on, counted from 1, and at most so many bytes; `-`: to its end.
op_read() {
  reach "$1"
  [ -d "$1" ] && fail is_directory
  [ -f "$1" ] || fail invalid
  [ -r "$1" ] || fail permission
  printf 'ok\n'
  local size
  size=$(stat -L -c %s -- "$1") || exit 2
  # Both fail far behind the end. A file of the kernel's has no size, and is short.
  [ "$2" -gt "$((size > 0 ? size : 1 << 40))" ] && exit 0
  # Both end with 1 for every failure, by which `tar` means less.
  if [ "$3" = - ]; then
    tail -c "+$2" -- "$1" || exit 2
  else
    dd if="$1" skip=$(($2 - 1)) count="$3" bs=64K iflag=skip_bytes,count_bytes,fullblock status=none || exit 2
  fi
}

# Moves what was uploaded into its place, and prints the size of the file.
# The path, the mode, permission bits or `-`, the most bytes or `-`, and the upload.
op_commit() {
  path=$1 mode=$2 permissions=$3 most=$4 upload=$5 new=
  local hops=0
  trap 'rm -f -- "$upload" "$new"' EXIT
  if [ "$mode" = create_new ]; then
    [ -e "$path" ] || [ -L "$path" ] && fail already_exists
  fi
  while [ -L "$path" ]; do
    hops=$((hops + 1))
    [ "$hops" -le "$most_links" ] || fail invalid
    follow "$path"
    path=$target
  done
  [ -d "$path" ] && fail is_directory
  if [ -e "$path" ]; then
    [ -f "$path" ] || fail invalid
    [ -w "$path" ] || fail permission
  fi
  split "$path"
  [ "$mode" = append ] && [ -e "$path" ] || writable "$dir"
  cd -P -- "$dir" 2>/dev/null || fail permission
  if [ "$mode" = append ]; then append; else replace; fi
}

append() {
  local before
  if [ ! -e "./$base" ]; then
    stage
    ln -T -- "$new" "./$base" 2>/dev/null && committed
    rm -f -- "$new"
  fi
  # Another one has just made it, or there are no links here.
  local is_new=
  [ -e "./$base" ] || is_new=1
  exec 9>>"./$base" || fail permission
  flock -w "$lock_patience" 9 || fail unavailable
  before=$(stat -L -c %s /proc/self/fd/9) || fail unavailable
  if [ "$most" != - ]; then
    [ $((before + $(stat -c %s -- "$upload"))) -le "$most" ] || fail too_large
  fi
  if [ -n "$is_new" ]; then
    [ "$permissions" = - ] && permissions=644
    chmod -- "$permissions" "./$base"
  fi
  if ! cat -- "$upload" >&9 2>/dev/null; then
    truncate -s "$before" /proc/self/fd/9 2>/dev/null
    fail quota
  fi
  committed
}

# Makes a file beside the place of what was uploaded, with its content and mode, and sets `new`.
stage() {
  local made
  if ! made=$(mktemp -p . .eyot-XXXXXXXXXX 2>/dev/null); then
    is_full && fail quota
    fail permission
  fi
  new=$PWD/$made
  cat -- "$upload" >"$new" 2>/dev/null || fail quota
  if [ "$permissions" != - ]; then
    chmod -- "$permissions" "$new"
  elif [ -e "./$base" ]; then
    chmod --reference="./$base" -- "$new"
  else
    chmod -- 644 "$new"
  fi
}

# Tells whether the disk of the current directory has no room.
is_full() {
  local facts
  facts=($(stat -f -c '%S %a %c %d' .)) || return
  # Less than `tar` writes at once.
  [ $((facts[0] * facts[1])) -lt 10240 ] && return
  # Some disks do not count their files.
  [ "${facts[2]}" != 0 ] && [ "${facts[3]}" = 0 ]
}

# Ends with the size of the file that was written.
committed() {
  printf 'ok\n%s' "$(stat -c %s -- "./$base")"
  exit 0
}

replace() {
  stage
  if [ "$mode" = create_new ]; then
    if ! ln -T -- "$new" "./$base" 2>/dev/null; then
      [ -e "./$base" ] || [ -L "./$base" ] && fail already_exists
      is_full && fail quota
      fail permission
    fi
  else
    mv -f -T -- "$new" "./$base" 2>/dev/null || fail permission
  fi
  committed
}

op_mkdir() {
  local path=$1 recursive=$2 dir base
  if [ "$recursive" = yes ]; then
    if [ ! -d "$path" ]; then
      [ -e "$path" ] || [ -L "$path" ] && fail already_exists
      mkdir -p -- "$path" 2>/dev/null || blocked "$path"
    fi
  else
    [ -e "$path" ] || [ -L "$path" ] && fail already_exists
    split "$path"
    reach "$dir"
    [ -d "$dir" ] || fail not_directory
    if ! mkdir -- "$path" 2>/dev/null; then
      [ -e "$path" ] && fail already_exists
      fail permission
    fi
  fi
  printf 'ok\n'
}

# Ends with the reason why a directory could not be made with its parents.
blocked() {
  local path=$1
  [ -d "$path" ] && return
  while [ "$path" != / ]; do
    split "$path"
    path=$dir
    [ -d "$path" ] && fail permission
    [ -e "$path" ] && fail not_directory
  done
  fail permission
}

op_remove() {
  local path=$1 recursive=$2
  [ -L "$path" ] || reach "$path"
  if [ -d "$path" ] && [ ! -L "$path" ]; then
    [ "$recursive" = yes ] || fail is_directory
    rm -rf -- "$path" 2>/dev/null || fail permission
  else
    rm -f -- "$path" 2>/dev/null || fail permission
  fi
  printf 'ok\n'
}

op_rename() {
  local from=$1 to=$2 dir base
  [ "$from" != / ] || fail invalid
  [ -L "$from" ] || reach "$from"
  if [ "$from" != "$to" ]; then
    if [ -d "$from" ] && [ ! -L "$from" ]; then
      case $to/ in "$from"/*) fail invalid ;; esac
      if [ -d "$to" ] && [ ! -L "$to" ]; then
        [ -z "$(find "$to" -mindepth 1 -print -quit 2>/dev/null | head -c 1)" ] || fail already_exists
      elif [ -e "$to" ] || [ -L "$to" ]; then
        fail not_directory
      fi
    else
      [ -d "$to" ] && [ ! -L "$to" ] && fail is_directory
    fi
    split "$from"
    writable "$dir"
    split "$to"
    writable "$dir"
    mv -f -T -- "$from" "$to" 2>/dev/null || fail permission
  fi
  printf 'ok\n'
}

# A tree as an archive. What is no file, directory or link is left out.
op_pack() {
  local dir base
  [ "$1" != / ] || fail invalid
  [ -L "$1" ] || reach "$1"
  split "$1"
  cd -P -- "$dir" 2>/dev/null || fail permission
  printf 'ok\n'
  local ends
  find "./$base" -ignore_readdir_race ! -type p ! -type s ! -type b ! -type c -print0 | sed -z 's,^\./,,' |
    tar --create --format=gnu --null --verbatim-files-from --no-recursion --files-from=- --file=- 2>/dev/null
  ends=("${PIPESTATUS[@]}")
  # Without the whole list, `tar` packs a part and is content.
  [ "${ends[0]}${ends[1]}" = 00 ] || exit 2
  exit "${ends[2]}"
}

# Unpacks an upload below a directory. The other upload names the directories on the way, of which none may be a link.
# Its names and links were checked before, so `tar` need not put off the links that lead out, as it does by itself.
op_unpack() {
  upload=$2 ways=$3
  trap 'rm -f -- "$upload" "$ways"' EXIT
  writable "$1"
  cd -P -- "$1" 2>/dev/null || fail permission
  local way
  while IFS= read -r -d '' way; do
    [ -L "./$way" ] && fail invalid
  done <"$ways"
  if ! tar --extract --absolute-names --file="$upload" --same-permissions --no-same-owner --delay-directory-restore 2>/dev/null; then
    is_full && fail quota
    fail permission
  fi
  printf 'ok\n'
}

if [ "$1" != "$life" ]; then
  # Nothing that was uploaded for this stays.
  for argument; do
    case $argument in /tmp/.eyot-*) rm -f -- "$argument" ;; esac
  done
  fail sleeping
fi
op=$2
shift 2
"op_$op" "$@"
