# Sets `life` to what tells one life of the sandbox from the next: the start of its system and of its first process.
set_life() {
  local boot stat facts
  read -r boot </proc/sys/kernel/random/boot_id
  # A name may have a line's end in it.
  read -r -d '' stat </proc/1/stat
  facts=(${stat##*) })
  life=$boot:${facts[19]}
}
set_life
