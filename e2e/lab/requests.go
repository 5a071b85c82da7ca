package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Request is one request that a service account made to the API server.
type Request struct {
	Time        time.Time // when the API server received it
	User        string    // such as system:serviceaccount:argo-rollouts:argo-rollouts
	UserAgent   string    // tells a plugin from its controller, who are the same user
	Verb        string    // get, list, watch, create, update, patch, delete
	APIGroup    string
	Resource    string // plural, such as virtualservices
	Subresource string
	Namespace   string
	Name        string
	Code        int // HTTP status of the answer
}

// auditEvent is the part of an audit.k8s.io/v1 Event that a Request is made of.
type auditEvent struct {
	Stage                    string
	Verb                     string
	UserAgent                string
	User                     struct{ Username string }
	RequestReceivedTimestamp time.Time
	ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus           struct{ Code int }
}

// Requests returns the requests of service accounts that keep accepts, all of
// them if it is nil, in the order in which they were answered. A watch is
// listed when it begins. A request is listed once its answer is out.
func (l *Lab) Requests(keep func(Request) bool) ([]Request, error) {
	file, err := os.Open(l.auditLog)
	if os.IsNotExist(err) {
		return nil, nil // no service account has asked for anything yet
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []Request
	err = lines(file, func(line []byte) {
		event := auditEvent{}
		// The last line may be half written; it is complete the next time.
		if json.Unmarshal(line, &event) != nil || !event.counts() {
			return
		}
		if r := event.request(); keep == nil || keep(r) {
			found = append(found, r)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("audit log %s: %w", l.auditLog, err)
	}
	return found, nil
}

// counts picks one of the stages that a request is logged in.
func (e auditEvent) counts() bool {
	if e.Verb == "watch" {
		return e.Stage == "ResponseStarted"
	}
	return e.Stage == "ResponseComplete" || e.Stage == "Panic"
}

func (e auditEvent) request() Request {
	return Request{
		Time: e.RequestReceivedTimestamp, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb,
		APIGroup: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
	}
}

// lines reads a text line by line. Those of an audit log may be long.
func lines(in io.Reader, each func(line []byte)) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 64<<10), 4<<20)
	for scanner.Scan() {
		each(scanner.Bytes())
	}
	return scanner.Err()
}
