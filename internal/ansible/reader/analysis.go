package reader

// Analysis is the result for one text.
type Analysis struct {
	// Error is Jinja's, of a text that does not parse. Line is in the text, from 1.
	Error string `json:"error"`
	Line  int    `json:"line"`
	// Names are the variables that the text reads, each where it does first. Guarded are those
	// that it reads by default() or asks for by "is defined".
	Names    []Named  `json:"names"`
	Guarded  []string `json:"guarded"`
	Outputs  []Output `json:"outputs"`
	Lookups  []Lookup `json:"lookups"`
	Includes []Use    `json:"includes"`
	// Indexes are the flows of X in vars[X] and hostvars[X].
	Indexes []Output `json:"indexes"`
	// Operands are variables and lookups that a filter, a method or an operator takes. Sums are the
	// operands of +.
	Operands []Operand `json:"operands"`
	Sums     []Sum     `json:"sums"`
	Filters  []Named   `json:"filters"`
	Tests    []Named   `json:"tests"`
	// Whole is set if the text is one expression and nothing else.
	Whole bool `json:"whole"`
	// Types are the types that the text may have once it is rendered.
	Types []Type `json:"types"`
	// MayBeEmpty is set for a text with statements that may write nothing.
	MayBeEmpty bool `json:"mayBeEmpty"`
}

// Output is an expression that is written into the text, or the like.
type Output struct {
	Line  int    `json:"line"`
	Flows []Flow `json:"flows"`
	Value Value  `json:"value"`
}

// Flow is a variable, or the result of a lookup, whose text gets into a value.
type Flow struct {
	// Name is "" for the result of a lookup.
	Name string `json:"name"`
	// Path leads from the variable to the value: keys, and "[]" for an element.
	Path []string `json:"path"`
	// Filters are the filters that the value went through, methods with a dot before.
	Filters []string `json:"filters"`
	// Lookup is an index in Lookups, or -1.
	Lookup int `json:"lookup"`
}

// Element is in a Flow's path for an element of a list or an index that is not literal.
const Element = "[]"

// Lookup is a call of lookup or query.
type Lookup struct {
	Line    int              `json:"line"`
	Plugin  string           `json:"plugin"`
	Terms   []Value          `json:"terms"`
	Options map[string]Value `json:"options"`
}

// Use is another template that a template includes.
type Use struct {
	Line int   `json:"line"`
	Term Value `json:"term"`
}

// Value is a literal, or the values that flow into it.
type Value struct {
	IsLiteral bool   `json:"isLiteral"`
	Literal   any    `json:"literal"`
	Flows     []Flow `json:"flows"`
	// Parts are the values that ~ or + joins.
	Parts []Value `json:"parts"`
}

// Operand is the value that an operator takes: a filter by its name, a method behind a dot, or +
// and ~.
type Operand struct {
	Line     int    `json:"line"`
	Operator string `json:"operator"`
	Flows    []Flow `json:"flows"`
}

// Sum has the types that both sides of a + may have.
type Sum struct {
	Line  int    `json:"line"`
	Left  []Type `json:"left"`
	Right []Type `json:"right"`
}

// Named is a variable, a filter or a test. Sure is set for a variable that each rendering reads.
type Named struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	Sure bool   `json:"sure"`
}

// Type is a type that a value may have: Type is str, int, float, bool, list, dict, NoneType
// or unknown; or it is that of the variable.
type Type struct {
	Type string   `json:"type"`
	Name string   `json:"name"`
	Path []string `json:"path"`
}
