# Filters that the library lacks, or that print and fail otherwise than those of jq.

def __need($type; $what): if type == $type then . else __fail($what) end;
def error(msg): msg as $m | $m | error_empty as $x | .;

# Types
def type: __type;
def isboolean: __type == "boolean";
def isnumber: __type == "number";
def isstring: __type == "string";
def isarray: __type == "array";
def isobject: __type == "object";
def booleans: select(__type == "boolean");
def numbers: select(__type == "number");
def strings: select(__type == "string");
def arrays: select(__type == "array");
def objects: select(__type == "object");
def iterables: select(__type | . == "array" or . == "object");
def scalars: select(__type | . != "array" and . != "object");
def nulls: select(. == null);
def values: select(. != null);
def toarray: if __type == "array" then . else [.] end;

# Numbers
def nan: __nan;
def infinite: __infinite;
def isnan: __need("number"; "number required") | __isnan;
def isinfinite: __need("number"; "number required") | . == __infinite or . == -__infinite;
def isfinite: __type == "number" and (isinfinite | not);
def isnormal: __need("number"; "number required") | (. == 0 or __isnan or isinfinite) | not;
def finites: select(__type == "number" and (isinfinite or __isnan | not));
def normals: select(__type == "number" and isnormal);
def gamma: lgamma;
def pow10: pow(10; .);
def significand: if . == 0 or isinfinite or __isnan then . else frexp[0] * 2 end;
def logb: if . == 0 then -__infinite elif isinfinite then __infinite elif __isnan then . else frexp[1] - 1 end;
def abs: if __type == "number" and . < 0 then -. else __need("number"; "has no absolute value") end;
def have_literal_numbers: true;
def have_decnum: false;

# Text
def ltrimstr($x): if __type == "string" and ($x | __type) == "string" and startswith($x) then .[($x | length):] else . end;
def rtrimstr($x):
  if __type == "string" and ($x | __type) == "string" and endswith($x) and $x != ""
  then .[:length - ($x | length)] else . end;
def trimstr($x): ltrimstr($x) | rtrimstr($x);
def __startswith($x): startswith($x);
def __endswith($x): endswith($x);
def startswith($x):
  if __type == "string" and ($x | __type) == "string" then __startswith($x)
  else error("startswith() requires string inputs") end;
def endswith($x):
  if __type == "string" and ($x | __type) == "string" then __endswith($x)
  else error("endswith() requires string inputs") end;
def __explode: explode;
def explode: if __type == "string" then __explode else error("explode input must be a string") end;
def __downcase: ascii_downcase;
def __upcase: ascii_upcase;
def ascii_downcase: if __type == "string" then __downcase else error("ascii_downcase input must be a string") end;
def ascii_upcase: if __type == "string" then __upcase else error("ascii_upcase input must be a string") end;
def ascii: [.] | implode;
def __trim: trim;
def __ltrim: ltrim;
def __rtrim: rtrim;
def trim: __need("string"; "cannot be trimmed") | __trim;
def ltrim: __need("string"; "cannot be trimmed") | __ltrim;
def rtrim: __need("string"; "cannot be trimmed") | __rtrim;
def split($s):
  if __type == "string" and ($s | __type) == "string" then . / $s
  else error("split input and separator must be strings") end;
def join($s): __join($s);
def __utf8bytelength: utf8bytelength;
def utf8bytelength: __need("string"; "only strings have UTF-8 byte length") | __utf8bytelength;
def test($re; $flags): [__match($re; $flags; true)] | length > 0;
def test($re): test($re; null);
def match($re; $flags): __match($re; $flags; false);
def match($re): match($re; null);
def __named: reduce (.captures[] | select(.name != null)) as $c ({}; .[$c.name] = $c.string);
def capture($re; $flags): match($re; $flags) | __named;
def capture($re): capture($re; null);
def scan($re; $flags):
  match($re; "g" + $flags) | if (.captures | length) > 0 then [.captures[].string] else .string end;
def scan($re): scan($re; null);
def split($re; $flags): [__pieces($re; "g" + $flags)[] | strings];
def splits($re; $flags): split($re; $flags)[];
def splits($re): splits($re; null);
def sub($re; f; $flags):
  reduce __pieces($re; $flags)[] as $piece (""; . + ($piece | if __type == "string" then . else __named | f end));
def sub($re; f): sub($re; f; "");
def gsub($re; f; $flags): sub($re; f; "g" + $flags);
def gsub($re; f): gsub($re; f; "");

# Arrays and objects
def __sort: sort;
def sort: __need("array"; "cannot be sorted, as it is not an array") | __sort;
def __sort_by(f): sort_by(f);
def sort_by(f): __need("array"; "cannot be sorted, as it is not an array") | __sort_by([f]);
def __group_by(f): group_by(f);
def group_by(f): __need("array"; "cannot be grouped, as it is not an array") | __group_by([f]);
def unique_by(f): [group_by(f)[] | .[0]];
def unique: __need("array"; "cannot be sorted, as it is not an array") | [__group_by(.)[] | .[0]];
def __min_by(f): reduce min_by_or_empty(f) as $x (null; $x);
def __max_by(f): reduce max_by_or_empty(f) as $x (null; $x);
def min_by(f): __need("array"; "cannot be iterated over") | __min_by([f]);
def max_by(f): __need("array"; "cannot be iterated over") | __max_by([f]);
def min: min_by(.);
def max: max_by(.);
def __reverse: reverse;
def reverse:
  if __type == "string" then explode | __reverse | implode
  elif __type == "array" then __reverse
  elif length == 0 then []
  else error("Cannot reverse \(__type)") end;
def add(f): reduce f as $x (null; . + $x);
def add: add(.[]);
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def index($i): indices($i) | .[0];
def rindex($i): indices($i) | .[-1:][0];
def transpose: [range([.[] | length] | max // 0) as $i | [.[][$i]]];
def flatten($depth):
  def flat($d): .[] | if __type == "array" and $d > 0 then flat($d - 1) else . end;
  if $depth < 0 then error("flatten depth must not be negative") else [flat($depth)] end;
def flatten: flatten(1e9);
def to_entries: [keys_unsorted[] as $k | {key: $k, value: .[$k]}];
def from_entries:
  reduce .[] as $x ({};
    ($x | if __type == "object" then
        if has("key") then .key elif has("k") then .k elif has("name") then .name
        elif has("Name") then .Name elif has("Key") then .Key else .K end
      else . end
      | if __type == "number" or __type == "boolean" then tojson elif . == null then "null" else . end) as $key
    | . + {($key): ($x | if __type != "object" then null elif has("value") then .value
        elif has("v") then .v elif has("Value") then .Value else .V end)});
def with_entries(f): to_entries | map(f) | from_entries;
def combinations: if length == 0 then [] else .[0][] as $x | (.[1:] | combinations) as $w | [$x] + $w end;
def combinations($n): . as $dot | [range($n)] | map($dot) | combinations;
def INDEX(stream; f): reduce stream as $row ({}; .[$row | f | tostring] |= $row);
def INDEX(f): INDEX(.[]; f);
def IN(s): any(s == .; .);
def IN(src; s): any(src == s; .);
def getpath($path):
  if ($path | __type) != "array" then error("Path must be specified as an array")
  else reduce $path[] as $p (.; .[$p]) end;
def setpath($path; $x):
  if ($path | __type) != "array" then error("Path must be specified as an array") else getpath($path) = $x end;
def delpaths($paths):
  if ($paths | __type) != "array" then error("Paths must be specified as an array")
  else reduce ($paths | sort | __reverse[]) as $p (.; __delpath($p)) end;
def del(f): delpaths([path(f)]);
def paths: path(..) | select(length > 0);
def paths(p): . as $dot | paths | select(. as $path | $dot | getpath($path) | p);
def leaf_paths: paths(scalars);
def pick(f): . as $top | reduce path(f) as $p (null; setpath($p; $top | getpath($p)));
def __postorder: (.[]? | __postorder), .;
def tostream: path(__postorder) as $p | getpath($p) | reduce path(.[]?) as $q ([$p, .]; [$p + $q]);
def fromstream(f): {x: null, e: false} as $init
  | foreach f as $i ($init;
      if .e then $init else . end
      | if $i | length == 2
        then setpath(["e"]; $i[0] | length == 0) | setpath(["x"] + $i[0]; $i[1])
        else setpath(["e"]; $i[0] | length == 1) end;
      if .e then .x else empty end);
def truncate_stream(stream): . as $n | null | stream
  | if (.[0] | length) > $n then setpath([0]; .[0][$n:]) else empty end;

# Conversion
def tostring: if __type == "string" then . else tojson end;
def toboolean:
  if __type == "boolean" then . elif . == "true" then true elif . == "false" then false
  else __fail("cannot be parsed as a boolean") end;

# Dates
def __strptime($f): strptime($f);
def strptime($f):
  if __type != "string" or ($f | __type) != "string" then
    error("strptime/1 requires string inputs and arguments")
  else
    . as $s | try __strptime($f)
    catch error("date \"\($s)\" does not match format \"\($f)\"")
  end;
def __strftime($f): strftime($f);
def strftime($f):
  if __type == "number" or __type == "array" then
    if ($f | __type) == "string" then __strftime($f) else error("strftime/1 requires a string format") end
  else error("strftime/1 requires parsed datetime inputs") end;
def strflocaltime($f): strftime($f);
def localtime: gmtime;
def __mktime: mktime;
def mktime: if __type == "array" then __mktime else error("mktime requires array of 6 numbers") end;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def date: todate;
def todate: todateiso8601;
def fromdate: fromdateiso8601;

# Input and output
def input_filename: __input_filename;
def input_line_number: __input_line_number;
def env: __env;
def halt_error($code):
  if ($code | __type) != "number" then __fail("halt_error/1: number required") else
    (if __type == "string" then . elif . == null then empty else tojson + "\n" end | __stderr_text), halt($code)
  end;
def halt_error: halt_error(5);
def get_search_list: [];

# Formats
def @text: tostring;
def @json: tojson;
def @html: tostring | __escape_html;
def @uri: tostring | __escape_uri;
def @urid: tostring | decode_uri;
def @sh: [if __type == "array" then .[] else . end
  | if __type == "string" then "'" + (split("'") | join("'\\''")) + "'"
    elif __type == "array" or __type == "object" then __fail("can not be escaped for shell")
    else tojson end] | join(" ");
def @csv: __need("array"; "cannot be csv-formatted, only array") | [.[]
  | if __type == "string" then "\"" + (split("\"") | join("\"\"")) + "\""
    elif __type == "array" or __type == "object" then __fail("is not valid in a csv row")
    elif . == null then "" else tojson end] | join(",");
def @tsv: __need("array"; "cannot be tsv-formatted, only array") | [.[]
  | if __type == "string" then __escape_tsv
    elif __type == "array" or __type == "object" then __fail("is not valid in a tsv row")
    elif . == null then "" else tojson end] | join("\t");
def @base64: tostring | encode_base64;
def @base64d: tostring | __decode_base64;
def @base32: tostring | __encode_base32;
def @base32d: tostring | __decode_base32;
