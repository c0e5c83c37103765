package cli

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of a failure that no server spoke of.
const (
	reasonNoCredential metav1.StatusReason = "NoCredential" //nolint:gosec // the name of a reason
	reasonClient       metav1.StatusReason = "ClientFailure"
)

// inFormat writes a failure in the format that the answer would have had, for
// the program that reads it, and hands the error on, for the person and the exit
// code. A wrong use asked for nothing, and is told to the person alone.
func (e Env) inFormat(f format, err error) error {
	if err == nil || !f.whole() || answeredToo(err) {
		return err
	}
	r := explain(err, e.Now())
	if r.exit == exitUsage {
		return err
	}
	if failed := f.write(e.Out, failure(err, r)); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// answeredToo reports whether the answer has been printed beside the error.
func answeredToo(err error) bool {
	var (
		stoodIn *stoodInError
		state   *stateError
		running *stillRunningError
	)
	return errors.As(err, &stoodIn) || errors.As(err, &state) || errors.As(err, &running)
}

// failure is a failure as a Status: the hub's own, where it sent one.
func failure(err error, r report) *metav1.Status {
	s := statusOf(err)
	if s == nil {
		s = &metav1.Status{Status: metav1.StatusFailure, Message: r.says, Reason: reasonOf(r.exit)}
	}
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s
}

func reasonOf(exit int) metav1.StatusReason {
	switch exit {
	case exitUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case exitNoCredential:
		return reasonNoCredential
	default:
		return reasonClient
	}
}
