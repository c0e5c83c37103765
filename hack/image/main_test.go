package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArchiveIsAnImageOfOneLayer(t *testing.T) {
	content, err := archive("cellcast.io/canary:dev", "amd64", "cellcast-canary", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, content)
	for name, file := range files {
		if sum := fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(file)); len(name) == len(sum) && name != sum {
			t.Errorf("%s has the content of %s", name, sum)
		}
	}
	var index, manifest struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	decode(t, files["index.json"], &index)
	if diff := cmp.Diff(map[string]string{
		"io.containerd.image.name":          "cellcast.io/canary:dev",
		"org.opencontainers.image.ref.name": "dev",
	}, index.Manifests[0].Annotations); diff != "" {
		t.Errorf("the image is called (-want +got):\n%s", diff)
	}
	decode(t, blob(t, files, index.Manifests[0]), &manifest)

	var config map[string]any
	decode(t, blob(t, files, manifest.Config), &config)
	want := map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []any{"/cellcast-canary"}, "User": "65532:65532"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{manifest.Layers[0].Digest}},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("its configuration (-want +got):\n%s", diff)
	}
	layer := untar(t, blob(t, files, manifest.Layers[0]))
	if diff := cmp.Diff(map[string][]byte{"cellcast-canary": []byte("program")}, layer); diff != "" || len(manifest.Layers) != 1 {
		t.Errorf("of %d layers the first (-want +got):\n%s", len(manifest.Layers), diff)
	}
	if string(files["oci-layout"]) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", files["oci-layout"])
	}
}

func TestArchiveIsTheSameEachTime(t *testing.T) {
	first, err := archive("a:b", "amd64", "x", []byte("program"))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // what is decided by the order of a map shows sooner or later
		again, err := archive("a:b", "amd64", "x", []byte("program"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("the same program gave two archives")
		}
	}
}

// blob returns the content that the descriptor names.
func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	content, found := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
	if !found || len(content) != d.Size {
		t.Fatalf("the blob of %+v is there: %t, with %d bytes", d, found, len(content))
	}
	return content
}

func decode(t *testing.T, content []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
}

// untar returns the files of a tar, none of which may have a time or an owner.
func untar(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %s and %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
