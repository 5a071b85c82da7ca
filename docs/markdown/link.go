package markdown

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Link is a link or an image.
type Link struct {
	// At is page:line, Target what it leads to, as written.
	At, Target string
}

var (
	inlineCode = regexp.MustCompile("`+[^`]*`+")
	// A target may be in angle brackets, and a title may follow it.
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]*)>?(?:\s+["'][^)]*)?\)`)
	definition = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+["'(].*)?$`)
	attribute  = regexp.MustCompile(`<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]*)"`)
	autolink   = regexp.MustCompile(`<(https?://[^>\s]*)>`)
	named      = regexp.MustCompile(`<a\b[^>]*?\b(?:name|id)="([^"]+)"`)
)

// Links are the page's links, without what stands in code.
func (p Page) Links() []Link {
	var found []Link
	for i, l := range p.lines {
		if l.code {
			continue
		}
		text := inlineCode.ReplaceAllString(l.text, "`")
		for _, pattern := range []*regexp.Regexp{inlineLink, definition, attribute, autolink} {
			for _, match := range pattern.FindAllStringSubmatch(text, -1) {
				found = append(found, Link{p.at(i), match[1]})
			}
		}
	}
	return found
}

// Code is a piece of inline code.
type Code struct {
	// At is page:line.
	At, Text string
}

// InlineCode are the pieces of code in the running text.
func (p Page) InlineCode() []Code {
	var found []Code
	for i, l := range p.lines {
		if l.code {
			continue
		}
		for _, text := range inlineCode.FindAllString(l.text, -1) {
			found = append(found, Code{p.at(i), strings.TrimSpace(strings.Trim(text, "`"))})
		}
	}
	return found
}

var (
	heading  = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Anchors are what a link may name behind "#": the headings, as GitHub makes
// anchors of them, and the names that are set in HTML. Headings that would get the
// same anchor get a number from the second on.
func (p Page) Anchors() map[string]bool {
	all := map[string]bool{}
	times := map[string]int{}
	for _, l := range p.lines {
		if l.code {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(l.text, -1) {
			all[match[1]] = true
		}
		match := heading.FindStringSubmatch(l.text)
		if match == nil {
			continue
		}
		anchor := Anchor(match[1])
		name := anchor
		for all[name] {
			times[anchor]++
			name = fmt.Sprintf("%s-%d", anchor, times[anchor])
		}
		all[name] = true
	}
	return all
}

// Anchor is GitHub's anchor of a heading that is the first of its text: markup goes,
// letters become small, spaces become hyphens, and of the rest only letters, digits,
// hyphens and underscores stay.
func Anchor(text string) string {
	text = linkText.ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, text)
}
