"""Tests of the volume expansion of claims."""

from fairlead.server.admission import volume_expansion


def claim(size, *, phase="Bound", storage_class="fast", annotations=None):
    spec = {"resources": {"requests": {"storage": size}}, "storageClassName": storage_class}
    return {"metadata": {"annotations": annotations or {}}, "spec": spec, "status": {"phase": phase}}


CLASSES = {"fast": {"allowVolumeExpansion": True}, "slow": {}}


def test_bound_claim_can_grow_if_its_class_permits_expansion():
    assert volume_expansion.check_expansion(claim("2Gi"), claim("1Gi"), CLASSES.get) == ""
    assert "must support resize" in volume_expansion.check_expansion(
        claim("2Gi", storage_class="slow"), claim("1Gi", storage_class="slow"), CLASSES.get
    )
    assert "must support resize" in volume_expansion.check_expansion(
        claim("2Gi", storage_class=None), claim("1Gi", storage_class=None), CLASSES.get
    )


def test_class_in_the_annotation_takes_precedence():
    slow = {"volume.beta.kubernetes.io/storage-class": "slow"}
    error = volume_expansion.check_expansion(
        claim("2Gi", annotations=slow), claim("1Gi", annotations=slow), CLASSES.get
    )
    assert "must support resize" in error


def test_unbound_claim_cannot_grow_but_can_keep_its_size():
    assert "Only bound" in volume_expansion.check_expansion(claim("2Gi"), claim("1Gi", phase="Pending"), CLASSES.get)
    assert volume_expansion.check_expansion(claim("1024Mi"), claim("1Gi", phase="Pending"), CLASSES.get) == ""
