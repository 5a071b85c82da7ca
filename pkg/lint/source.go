package lint

// Source is one object as it stands in the input, for programs that do more with what
// was read than judge it.
type Source struct{ o *object }

// Sources are the objects of the kinds that checks look at, in the order in which they
// were read; of two with one name only the one that counts.
func (in *Input) Sources() []Source {
	all := make([]Source, len(in.objects))
	for i, o := range in.objects {
		all[i] = Source{o}
	}
	return all
}

// Is tells whether the object is of that kind, whatever the version. The group of the
// core kinds is empty.
func (s Source) Is(group, kind string) bool { return s.o.groupKind == groupKind{group, kind} }

// Namespace is never empty for a kind that needs one: see Input.Namespace.
func (s Source) Namespace() string { return s.o.Namespace }

// Name is never empty.
func (s Source) Name() string { return s.o.Name }

// String is "Kind namespace/name", as in Finding.Object.
func (s Source) String() string { return s.o.String() }

// Content is the object as JSON has it. It must not be changed.
func (s Source) Content() map[string]any { return s.o.content }

// Place is where a field stands, or the nearest part of its path that is there. The
// path is written as in Finding.Field; an empty one is the object. An object of a
// cluster has no place: "" and 0.
func (s Source) Place(field string) (file string, line int) { return s.o.file, s.o.line(field) }
