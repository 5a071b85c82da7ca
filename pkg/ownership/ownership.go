package ownership

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch/object"
)

// Annotation is where the account is kept: a JSON object from "namespace/name" of a
// Rollout to the list of names that were added for its experiments.
const Annotation = "istio.argoproj-labs.io/experiments"

// Account is the annotation of one object in one version. The zero value is that of
// an object without annotations. It must not be changed, and may then be used from
// any number of goroutines.
type Account struct {
	// Entries are by "namespace/name" of the Rollout and as written: only the entry
	// that is asked for is read.
	Entries map[string]json.RawMessage
	// Annotated tells that the object has the field metadata.annotations, so that one
	// can be added to it.
	Annotated bool
	// Malformed is why the annotation as a whole cannot be read, and names it.
	Malformed error
}

// Parse reads the account of u, which is neither changed nor referred to
// afterwards. It never fails; what is wrong is reported by the methods that need it.
func Parse(u *unstructured.Unstructured) Account {
	annotations := object.ContentOf(u).Field("metadata").Field("annotations")
	text, textErr := annotations.Field(Annotation).Text()
	account := Account{Annotated: !annotations.Absent(), Malformed: cmp.Or(annotations.Object(), textErr)}
	if account.Malformed != nil || text == "" {
		return account
	}
	if err := json.Unmarshal([]byte(text), &account.Entries); err != nil {
		account.Entries, account.Malformed = nil, wrong(`a JSON object like {"namespace/rollout": ["name"]}`, err)
	}
	return account
}

// wrong names the annotation, what belongs there and the remedy.
func wrong(wanted string, err error) error {
	return fmt.Errorf("metadata.annotations[%q]: want %s: correct it, or remove the annotation once nothing of an experiment is left in the object: %w",
		Annotation, wanted, err)
}

// Names are what stands under the Rollout owner ("namespace/name"), sorted, each
// once; none if it has no entry. It is an error, for the user to solve, if the
// annotation or the owner's entry cannot be read.
func (a Account) Names(owner string) ([]string, error) {
	if a.Malformed != nil {
		return nil, a.Malformed
	}
	entry, found := a.Entries[owner]
	if !found {
		return nil, nil
	}
	var names []string
	if err := json.Unmarshal(entry, &names); err != nil {
		return nil, wrong(fmt.Sprintf("a list of names under %q", owner), err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Other is a Rollout other than owner under which name stands, empty if there is
// none. Entries that cannot be read are passed over.
func (a Account) Other(owner, name string) string {
	for _, other := range slices.Sorted(maps.Keys(a.Entries)) {
		if other == owner {
			continue
		}
		if names, err := a.Names(other); err == nil && slices.Contains(names, name) {
			return other
		}
	}
	return ""
}

// Set is the patch after which exactly these names stand under owner. It is empty
// if they do; no names remove the entry, and the annotation with its last entry.
// Like every patch it is right only for the version that was parsed. Errors are
// those of Names, and text that JSON cannot hold.
func (a Account) Set(owner string, names []string) (jsonpatch.Patch, error) {
	for _, text := range append([]string{owner}, names...) {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is no UTF-8 text and cannot be written into the annotation %s", text, Annotation)
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	known, err := a.Names(owner)
	if err != nil {
		return nil, err
	}
	_, found := a.Entries[owner]
	if slices.Equal(known, names) && found == (len(names) > 0) {
		return nil, nil
	}
	return a.write(owner, names)
}

// write makes the operation for an entry that differs.
func (a Account) write(owner string, names []string) (jsonpatch.Patch, error) {
	path := jsonpatch.Pointer("metadata", "annotations", Annotation)
	entries := maps.Clone(a.Entries)
	if entries == nil {
		entries = map[string]json.RawMessage{}
	}
	delete(entries, owner)
	if len(entries) == 0 && len(names) == 0 {
		return jsonpatch.Patch{jsonpatch.Remove(path)}, nil
	}
	if len(names) > 0 {
		entry, err := json.Marshal(names)
		if err != nil {
			return nil, fmt.Errorf("write the names of %s: %w", owner, err)
		}
		entries[owner] = entry
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("write the annotation %s: %w", Annotation, err)
	}
	if !a.Annotated {
		return jsonpatch.Patch{jsonpatch.Add(jsonpatch.Pointer("metadata", "annotations"), map[string]string{Annotation: string(text)})}, nil
	}
	return jsonpatch.Patch{jsonpatch.Add(path, string(text))}, nil
}

// DeepCopy shares nothing with a but strings and errors.
func (a Account) DeepCopy() Account {
	a.Entries = maps.Clone(a.Entries)
	for owner, entry := range a.Entries {
		a.Entries[owner] = slices.Clone(entry)
	}
	return a
}
