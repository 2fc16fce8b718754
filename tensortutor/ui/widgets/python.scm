; What the editor colours in a Python program. Later patterns win.

(comment) @comment
(string) @string
(interpolation) @plain
[(integer) (float)] @number
[(none) (true) (false)] @number

(call function: (identifier) @call)
(call function: (attribute attribute: (identifier) @call))
(function_definition name: (identifier) @definition)
(class_definition name: (identifier) @definition)
(decorator) @decorator

[
  "and" "as" "assert" "async" "await" "break" "class" "continue" "def" "del"
  "elif" "else" "except" "finally" "for" "from" "global" "if" "import" "in"
  "is" "lambda" "nonlocal" "not" "or" "pass" "raise" "return" "try" "while"
  "with" "yield" "match" "case"
] @keyword
