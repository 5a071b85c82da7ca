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
		Instead: "Correct the place that the message names. Render templates first, and pipe the result in with -f -.",
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
		Instead: "Give metadata.name.",
	}
	sameName = &Check{
		Code: "ARI0004", Severity: Warning, Title: "Two objects with one name",
		Happens: "kubectl apply writes one over the other, so that the order of the files decides.",
		Instead: "Remove one, or check the variants (overlays, before and after) one by one.",
	}
	twice = &Check{
		Code: "ARI0005", Severity: Error, Title: "A field that stands twice",
		Happens: "The API server refuses the object, or one of the two values is lost.",
		Instead: "Remove one of them.",
		Not:     "What a merge (<<) brings and the mapping overrides is no repetition.",
	}
)

var inputChecks = []*Check{
	unreadable, noObject, nameless, sameName, twice,
	{
		Code: "ARI0006", Severity: Error, Title: "A Rollout whose fields have the wrong type", native: true, judge: wrongType,
		Happens: "The API server refuses it; nothing else of the Rollout was checked.",
		Instead: "Give the field the type that the message names.",
	},
	{
		Code: "ARI0007", Severity: Warning, Title: "A field that Rollouts do not have", native: true, judge: unknownFields,
		Happens: "The API server drops it without a word, so that what it was meant to do does not happen.",
		Instead: "Correct the name or the indentation. The block under plugins is checked by ARI0101.",
		Not:     "Only fields under spec are looked at. They are those of Argo Rollouts v1.10.1: a newer release may have more.",
	},
}

func wrongType(s *subject, tell tell) {
	if s.malformed == nil {
		return
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(s.malformed, &wrong) {
		tell(s.o, wrong.Field, "%s stands here, and %s is wanted", wrong.Value, wrong.Type)
		return
	}
	tell(s.o, "spec", "it cannot be read: %s", cut(s.malformed.Error()))
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
