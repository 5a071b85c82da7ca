package docs

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
)

// repository is this one on GitHub.
const repository = "argoproj-labs/" + program

var (
	// ownAddress is one of this repository, wherever it stands on a page.
	ownAddress = regexp.MustCompile(`https?://(?:github\.com|raw\.githubusercontent\.com)/` + regexp.QuoteMeta(repository) + "(?:[/?#][^\\s\"'`<>()\\[\\]|\\\\]*)?")
	// atRevision are the parts of an address of a file at a branch, tag or commit.
	atRevision = regexp.MustCompile(`^/(?:(?:blob|tree|raw|edit|blame)/)?(?:refs/(?:heads|tags)/)?([^/]+)(/.*)?$`)
	released   = regexp.MustCompile(`^(?:v\d.*|[0-9a-f]{40}|VERSION)$`)
	// workflow is the page of a workflow, or its badge.
	workflow = regexp.MustCompile(`^/actions/workflows/([^/]+)`)
	// identity is a workflow as a certificate names it.
	identity = regexp.MustCompile(`^/(\.github/workflows/[^@]+)@`)
)

// ownFile is the path of the file or folder of this repository that an address leads
// to; "" if it leads to none, or to one at a release, which cannot be looked at.
func ownFile(to *url.URL) (string, error) {
	host, isOwn := strings.ToLower(to.Hostname()), strings.HasPrefix(to.Path+"/", "/"+repository+"/")
	if !isOwn || host != "github.com" && host != "raw.githubusercontent.com" {
		return "", nil
	}
	rest := strings.TrimPrefix(to.Path, "/"+repository)
	if found := workflow.FindStringSubmatch(rest); found != nil {
		return ".github/workflows/" + found[1], nil
	}
	if found := identity.FindStringSubmatch(rest); found != nil {
		return found[1], nil
	}
	if folder, isKustomization := strings.CutPrefix(rest, "//"); isKustomization {
		return folder, nil
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	if host == "github.com" && !strings.Contains(" blob tree raw edit blame ", " "+kind+" ") {
		return "", nil
	}
	found := atRevision.FindStringSubmatch(rest)
	switch {
	case found == nil:
		return "", fmt.Errorf("it names no file")
	case released.MatchString(found[1]):
		return "", nil
	case found[1] != "main" && found[1] != "HEAD":
		return "", fmt.Errorf("%s is neither the branch main nor a release", found[1])
	}
	return path.Clean(strings.TrimPrefix(found[2], "/")), nil
}

func TestEveryAddressOfThisRepositoryLeadsToWhatIsThere(t *testing.T) {
	anchors := allAnchors(t)
	addresses := 0
	for _, w := range allWritten(t) {
		for i, line := range w.lines {
			for _, address := range ownAddresses(line) {
				addresses++
				if err := leads(w.Path, address, anchors); err != nil {
					t.Errorf("%s: %s: %v", w.at(i), address, err)
				}
			}
		}
	}
	if addresses < 3 {
		t.Errorf("only %d addresses were found", addresses)
	}
}

// ownAddresses are those in a text, without the sign that ends a sentence.
func ownAddresses(text string) []string {
	var found []string
	for _, address := range ownAddress.FindAllString(text, -1) {
		found = append(found, strings.TrimRight(address, ".,;:!?"))
	}
	return found
}

func TestAnAddressOfThisRepositoryThatLeadsNowhereIsFound(t *testing.T) {
	const own, raw = "https://github.com/" + repository, "https://raw.githubusercontent.com/" + repository
	anchors := map[string]map[string]bool{"docs/guard.md": {"there": true}}
	for name, tc := range map[string]struct{ text, want string }{
		"a page":                           {"[x](" + own + "/blob/main/docs/missing.md)", "docs/missing.md"},
		"a page in running text":           {"see " + own + "/blob/main/docs/missing.md.", "docs/missing.md"},
		"a folder":                         {"<" + own + "/tree/main/examples/nosuch>", "examples/nosuch"},
		"a file that a command fetches":    {"kubectl apply -f " + raw + "/main/examples/nosuch.yaml", "examples/nosuch.yaml"},
		"the same by the branch's ref":     {raw + "/refs/heads/main/nosuch.yaml", "nosuch.yaml"},
		"a kustomization":                  {"- " + own + "//examples/nosuch?ref=VERSION", "examples/nosuch"},
		"a heading":                        {own + "/blob/main/docs/guard.md#nosuch", "no such heading"},
		"a branch":                         {own + "/blob/mian/docs/guard.md", "neither the branch"},
		"no file at all":                   {raw + "/", "names no file"},
		"a workflow's badge":               {own + "/actions/workflows/nosuch.yml/badge.svg", ".github/workflows/nosuch.yml"},
		"a workflow of a certificate":      {own + "/.github/workflows/nosuch.yml@refs/tags/v1.2.3", ".github/workflows/nosuch.yml"},
		"a file outside of the repository": {own + "/blob/main/../x", "leaves the repository"},
		"the repository":                   {own + ", and " + own + "/tree/main.", ""},
		"a repository of a longer name":    {own + "-other/blob/main/x", ""},
		"a release":                        {own + "/releases/latest/download/x.yaml", ""},
		"a heading that is there":          {own + "/blob/main/docs/guard.md#there", ""},
		"a page at a release":              {own + "/blob/v1.2.3/docs/missing.md", ""},
		"a kustomization that is there":    {own + "//examples/install/base?ref=VERSION", ""},
		"a workflow that is there":         {own + "/.github/workflows/release.yml@refs/tags/v1.2.3", ""},
		"a file that is there":             {raw + "/main/examples/subset-level/rollout.yaml", ""},
		"another repository":               {"https://github.com/argoproj/argo-rollouts/blob/main/docs/missing.md", ""},
	} {
		var faults []string
		for _, address := range ownAddresses(tc.text) {
			if err := leads("docs/p.md", address, anchors); err != nil {
				faults = append(faults, err.Error())
			}
		}
		wantFaults(t, name, faults, tc.want)
	}
}

func TestEveryLinkIsWrittenSoThatItIsFollowed(t *testing.T) {
	for _, w := range allWritten(t) {
		for _, fault := range w.linkFaults() {
			t.Error(fault)
		}
	}
}

var (
	// reference is a link whose target stands elsewhere on the page.
	reference = regexp.MustCompile(`(?:\[([^\[\]]*))?\]\[([^\[\]]*)\]`)
	defined   = regexp.MustCompile(`^\s{0,3}\[([^\]]+)\]:\s*\S`)
	// followed is the form in HTML that package markdown reads.
	followed  = regexp.MustCompile(`<(?:a|img)\b[^>]*?\b(?:href|src)="[^"]*"`)
	attribute = regexp.MustCompile(`(?i)\b(?:href|src|srcset)\s*=`)
)

// linkFaults are the links that [TestEveryLinkLeadsSomewhere] would not see.
func (w written) linkFaults() []string {
	prose := w.prose()
	labels := map[string]bool{}
	for _, line := range prose {
		if found := defined.FindStringSubmatch(line); found != nil {
			labels[label(found[1])] = true
		}
	}
	var faults []string
	for i, line := range prose {
		for _, found := range reference.FindAllStringSubmatch(line, -1) {
			name := found[2]
			if name == "" {
				name = found[1]
			}
			if !labels[label(name)] {
				faults = append(faults, fmt.Sprintf("%s: no line of the page says [%s]: where the link leads; if it is none, put it into `code`", w.at(i), name))
			}
		}
		if attribute.MatchString(followed.ReplaceAllString(line, "")) {
			faults = append(faults, fmt.Sprintf(`%s: write links of HTML as <a href="…"> and <img src="…">, in one line`, w.at(i)))
		}
	}
	return faults
}

// label is how Markdown compares the names of links.
func label(name string) string { return strings.ToLower(words(name)) }

func TestALinkThatWouldNotBeFollowedIsFound(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a reference that nothing defines":     {"[x][undefined]\n\n[defined]: a.md\n", "[undefined]"},
		"one that only code defines":           {"[x][y]\n```text\n[y]: a.md\n```\n", "[y]"},
		"a reference by its own text":          {"[undefined][]\n", "[undefined]"},
		"a picture":                            {"[![x](a.svg)][undefined]\n", "[undefined]"},
		"single quotes":                        {"<a href='missing.md'>x</a>\n", "href="},
		"no quotes":                            {"<a href=missing.md>x</a>\n", "href="},
		"capital letters":                      {"<A HREF=\"missing.md\">x</A>\n", "href="},
		"a link over two lines":                {"<a\n  href=\"missing.md\">x</a>\n", "href="},
		"a second source":                      {"<source srcset=\"missing.svg\"><img src=\"a.svg\">\n", "href="},
		"a link that is followed, and another": {"<a href=\"a.md\">x</a> <a href='missing.md'>\n", "href="},
		"links as they should be": {"[x][One  more], [one more][], [y][2] `a[x][y]` <a id=\"z\" href=\"a.md\"><img src=\"b.svg\"></a> `href=x`\n\n" +
			"[one more]: a.md\n[2]: <b.md> \"title\"\n```text\n[x][y] src='z'\n```\n", ""},
	} {
		w, err := layOut("p.md", tc.text)
		if err != nil {
			t.Fatal(err)
		}
		wantFaults(t, name, w.linkFaults(), tc.want)
	}
}
