package lint

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

var (
	unreadable = &Check{
		Code: "ARI0001", Severity: Error, Title: "The text cannot be read",
		Happens: "Neither kubectl nor this command can read it; the document was not checked.",
		Instead: "Correct the place that the message names. Render templates first, and pipe the result in with -f -. Put a line with --- between several JSON texts in one file, wrap a list in kind: List, and split a file of more than 16 MiB.",
		Not:     "A .json file that names no kind is ARI0002.",
	}
	noObject = &Check{
		Code: "ARI0002", Severity: Info, Title: "A document that is no Kubernetes object",
		Happens: "It was not looked at.",
		Instead: "Leave such files out, or add apiVersion and kind.",
		Not:     "Objects of kinds that have nothing to do with a Rollout's routing are passed over without a word.",
	}
	nameless = &Check{
		Code: "ARI0003", Severity: Error, Title: "An object without a name",
		Happens: "The API server refuses it, or makes up a name that nothing else can refer to.",
		Instead: "Give metadata.name, in quotes if it is a number.",
	}
	sameName = &Check{
		Code: "ARI0004", Severity: Error, Title: "Two objects with one name",
		Happens: "kubectl apply writes one over the other, so that the order of the files decides; only one of the two was checked.",
		Instead: "Remove one, or check the variants (environments, before and after) one by one. With Kustomize check what it renders: kubectl kustomize DIR, piped in with -f -.",
		Not:     "Equal contents are a note. Of a Rollout it is always said, of other objects if a Rollout names them. A Rollout without spec.strategy is taken for a patch, and the other one is checked.",
	}
	twice = &Check{
		Code: "ARI0005", Severity: Error, Title: "A field that stands twice",
		Happens: "One of the two values is lost: here and with kubectl the last one counts, other tools refuse the file.",
		Instead: "Remove one of them.",
		Not:     "What a merge (<<) brings and the mapping overrides is no repetition, and documents without a kind are not looked at.",
	}
)

// unserved is found for every object, as it is not the Rollout alone that is refused.
var unserved = &Check{
	Code: "ARI0008", Severity: Error, Title: "A version or kind that its group does not have",
	Happens: "The API server refuses the object: no matches for kind in version.",
	Instead: "Write the apiVersion and the kind that the message names.",
	Not:     "Only for the kinds that are looked at, in any version that API servers have had. Kinds of other groups are passed over, whatever their name.",
}

var inputChecks = []*Check{
	unreadable, noObject, nameless, sameName, twice,
	{
		Code: "ARI0006", Severity: Error, Title: "A Rollout whose fields have the wrong type", native: true, fields: true, judge: wrongType,
		Happens: "The API server refuses it; nothing else of the Rollout was checked.",
		Instead: "Give the field the type that the message names.",
	},
	{
		Code: "ARI0007", Severity: Warning, Title: "A field that Rollouts do not have", native: true, fields: true, judge: unknownFields,
		Happens: "The API server drops it without a word, so that what it was meant to do does not happen.",
		Instead: "Correct the name or the indentation. The block under plugins is checked by ARI0101.",
		Not:     "Only fields under spec are looked at. They are those of Argo Rollouts v1.10.1: a newer release may have more.",
	},
	unserved,
}

func wrongType(s *subject, tell tell) {
	if s.malformed == nil {
		return
	}
	path, err := faultyField(s.o.content)
	if err == nil { // it is the whole that cannot be read
		path, err = "spec", s.malformed
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		tell(s.o, path, "%s stands here, and %s is wanted", standing(wrong.Value), wanted(wrong.Type))
		return
	}
	tell(s.o, path, "it cannot be read: %s", cut(err.Error()))
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

func unknownFields(s *subject, tell tell) {
	for _, problem := range s.unknown {
		found := unknownField.FindStringSubmatch(problem)
		if len(found) == 2 && strings.HasPrefix(found[1], "spec.") {
			tell(s.o, found[1], "Argo Rollouts knows no field %s", found[1])
		}
	}
}
