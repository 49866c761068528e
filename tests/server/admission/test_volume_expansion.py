"""Claims grow where their storage class lets them."""

from fairlead.server.admission import volume_expansion


def claim(size, *, phase="Bound", storage_class="fast", annotations=None):
    spec = {"resources": {"requests": {"storage": size}}, "storageClassName": storage_class}
    return {"metadata": {"annotations": annotations or {}}, "spec": spec, "status": {"phase": phase}}


CLASSES = {"fast": {"allowVolumeExpansion": True}, "slow": {}}


def test_a_bound_claim_grows_where_its_class_allows_it():
    assert volume_expansion.refusal(claim("2Gi"), claim("1Gi"), CLASSES.get) == ""
    assert "must support resize" in volume_expansion.refusal(
        claim("2Gi", storage_class="slow"), claim("1Gi", storage_class="slow"), CLASSES.get
    )
    assert "must support resize" in volume_expansion.refusal(
        claim("2Gi", storage_class=None), claim("1Gi", storage_class=None), CLASSES.get
    )


def test_the_class_of_the_annotation_comes_first():
    slow = {"volume.beta.kubernetes.io/storage-class": "slow"}
    told = volume_expansion.refusal(claim("2Gi", annotations=slow), claim("1Gi", annotations=slow), CLASSES.get)
    assert "must support resize" in told


def test_a_claim_that_is_not_bound_does_not_grow_but_may_keep_its_size():
    assert "Only bound" in volume_expansion.refusal(claim("2Gi"), claim("1Gi", phase="Pending"), CLASSES.get)
    assert volume_expansion.refusal(claim("1024Mi"), claim("1Gi", phase="Pending"), CLASSES.get) == ""
