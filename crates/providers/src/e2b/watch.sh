# Prints `ended` once a process has ended, also if something holds its output open. The argument is its number. It stops
# when its input ends.
PATH=/usr/local/bin:/usr/bin:/bin
while read -r stat <"/proc/$1/stat"; do
  state=${stat##*) }
  [ "${state%% *}" = Z ] && break
  read -r -t 0.05 _
  [ $? -gt 128 ] || exit 0
done 2>/dev/null
printf 'ended\n'
