# Starts on record: the newest files of each unit, or of one. The caller sets UNIT, NEWEST, RECORDS,
# FILE_NAME, PREFIX and MOST.
there() { [ -e "$RECORDS" ] || return 3; ls -- "$RECORDS" >/dev/null; }
newest() { ls -- "$1" | grep -Ex "$FILE_NAME" | sort -rn | head -n "$NEWEST"; }
sec records there
for folder in "$RECORDS"/*/; do
  of=${folder%/}; of=${of##*/}
  case $of in *[!A-Za-z0-9@._:-]*) continue ;; esac
  [ -z "$UNIT" ] || [ "$UNIT" = "$of" ] || continue
  for file in $(newest "$folder"); do
    sec "$PREFIX$of/$file" head -c "$MOST" -- "$folder$file"
  done
done
