package virtualservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// form is which field of a StringMatch is set.
type form string

const (
	unset  form = ""
	exact  form = "exact"
	prefix form = "prefix"
	regex  form = "regex"
)

// condition is a StringMatch as Istio has it: one text and how it is compared.
type condition struct {
	form form
	text string
}

// String is how people write it, as in: prefix "/api".
func (c condition) String() string {
	if c.form == unset {
		return "any value"
	}
	return fmt.Sprintf("%s %q", c.form, c.text)
}

// condition refuses two forms at once: which of them counts would be a guess.
func (m StringMatch) condition() (condition, error) {
	var found condition
	for _, c := range []condition{{exact, m.Exact}, {prefix, m.Prefix}, {regex, m.Regex}} {
		if c.text == "" {
			continue
		}
		if found.form != unset {
			return condition{}, fmt.Errorf("it has both %s and %s: keep one", found, c)
		}
		found = c
	}
	return found, nil
}

// readCondition reads what stands in the object; null and absent are unset.
func readCondition(raw json.RawMessage) (condition, error) {
	var content map[string]*string
	if len(raw) == 0 {
		return condition{}, nil
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return condition{}, fmt.Errorf("want an object with exact, prefix or regex: %w", err)
	}
	var found condition
	for key, text := range content {
		switch known := form(key); {
		case text == nil:
		case known != exact && known != prefix && known != regex:
			return condition{}, fmt.Errorf("the field %q is not known, so nothing can be added to it", key)
		case found.form != unset:
			return condition{}, errors.New("it has more than one of exact, prefix and regex: keep one")
		default:
			found = condition{known, *text}
		}
	}
	return found, nil
}

// write is the condition as it stands in an object.
func (c condition) write() (json.RawMessage, error) {
	content := map[string]string{}
	if c.form != unset {
		content[string(c.form)] = c.text
	}
	return json.Marshal(content)
}

// comparison is how one field is compared.
type comparison struct {
	// path: every path begins with "/", so that this prefix asks for nothing.
	path bool
	// fold: upper and lower case are the same (ignoreUriCase).
	fold bool
}

// open tells whether every value satisfies c. Istio knows "*" as "there, with any
// value"; it is no regular expression.
func (of comparison) open(c condition) bool {
	switch c.form {
	case unset:
		return true
	case prefix:
		return c.text == "" || of.path && c.text == "/"
	case regex:
		return c.text == ".*" || c.text == "*" && !of.path
	}
	return false
}

// errNotCombined is that two conditions may have values in common, but no single
// condition says which.
var errNotCombined = errors.New("one field cannot hold both")

// both is the condition that holds where a and b do, which is one of the two; possible
// is false if no value satisfies both.
func (of comparison) both(a, b condition) (c condition, possible bool, err error) {
	switch {
	case a == b || of.open(b):
		return a, true, nil
	case of.open(a):
		return b, true, nil
	case a.form == exact:
		possible, err = of.admits(b, a.text)
		return a, possible, err
	case b.form == exact:
		possible, err = of.admits(a, b.text)
		return b, possible, err
	case a.form == prefix && b.form == prefix && len(a.text) >= len(b.text):
		return a, of.begins(a.text, b.text), nil
	case a.form == prefix && b.form == prefix:
		return b, of.begins(b.text, a.text), nil
	}
	return condition{}, false, errNotCombined
}

// admits tells whether one value satisfies c. Go's regular expressions are RE2, as
// Envoy's are; it matches the whole value.
func (of comparison) admits(c condition, value string) (bool, error) {
	switch c.form {
	case exact:
		return of.text(c.text) == of.text(value), nil
	case prefix:
		return of.begins(value, c.text), nil
	}
	flags := ""
	if of.fold {
		flags = "(?i)"
	}
	expression, err := regexp.Compile(flags + `\A(?:` + c.text + `)\z`)
	if err != nil {
		return false, fmt.Errorf("%s cannot be compared with %q: %w", c, value, err)
	}
	return expression.MatchString(value), nil
}

func (of comparison) begins(value, with string) bool {
	return strings.HasPrefix(of.text(value), of.text(with))
}

// text is what is compared. Only ASCII letters fold, which keeps every index.
func (of comparison) text(value string) string {
	if !of.fold {
		return value
	}
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, value)
}
