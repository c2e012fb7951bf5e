# Takes the arguments out of a file, whose path is the second one: more than Modal takes on a command's line.
if ! mapfile -d '' -t long_arguments <"$2"; then
  printf 'unavailable\n'
  exit 0
fi
rm -f -- "$2"
set -- "" "${long_arguments[@]}"
unset long_arguments
