"""Where each data set comes from and how its folder must look; without readers, because `--help` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class LayoutError(ValueError):
    """A data set is not where it should be, or looks different."""


@dataclass(frozen=True)
class Layout:
    """Where a data set comes from, and how its folder must look.

    Parameters
    ----------
    name : str
        As in ``pictopic reproduce NAME``.
    title : str
    url : str
        Of the page that offers it; only shown, never opened.
    steps : tuple of str
        What to download and where to unpack it.
    tree : str
        How the folder looks then.
    places : tuple of str
        Sub-folders in which the data set may lie instead, so that one folder can hold several of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.layouts import Layout
    >>> layout = Layout("sun", "Suns", "https://example.org", ("Download suns.zip and unpack it in DIR.",), "DIR/suns")
    >>> print(layout.help_text())
    Suns
    <BLANKLINE>
    From https://example.org
      1. Download suns.zip and unpack it in DIR.
    <BLANKLINE>
    The folder then looks like this:
      DIR/suns
    >>> layout.missing(Path("DIR/suns"), "the pictures (suns.zip)")
    LayoutError('DIR/suns is missing: the pictures (suns.zip); `pictopic reproduce sun --help` shows the layout')
    """

    name: str
    title: str
    url: str
    steps: tuple[str, ...]
    tree: str
    places: tuple[str, ...] = ()

    def help_text(self) -> str:
        """All of it as text, for ``--help``."""
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        tree = [f"  {line}".rstrip() for line in self.tree.strip("\n").splitlines()]
        return "\n".join([self.title, "", f"From {self.url}", *steps, "", "The folder then looks like this:", *tree])

    def missing(self, path: Path, what: str) -> LayoutError:
        """The error for a file or folder that is not there; `what` says what is in it."""
        return LayoutError(f"{path} is missing: {what}; `pictopic reproduce {self.name} --help` shows the layout")

    def inside(self, folder: Path) -> Path:
        """The folder of the data set: the first of the `places` that is there, or the folder itself."""
        if not folder.is_dir():
            raise self.missing(folder, f"the folder of {self.title}")
        return next((folder / place for place in self.places if (folder / place).is_dir()), folder)


_LABELME = Layout(
    name="labelme",
    title="LabelMe: eight outdoor scenes (Oliva and Torralba)",
    url="https://people.csail.mit.edu/torralba/code/spatialenvelope/",
    steps=(
        "Download spatial_envelope_256x256_static_8outdoorcategories.zip (2,688 pictures) and unpack it in DIR.",
        "For tags, put LabelMe's annotations (XML files) beside the pictures or into DIR/Annotations.",
    ),
    tree="""
DIR/spatial_envelope_256x256_static_8outdoorcategories/
    coast_art1130.jpg                    the class is the name up to the first underscore
    coast_art1130.xml                    its tags, if there are any
    ...
DIR/Annotations/spatial_envelope_256x256_static_8outdoorcategories/
    coast_art1130.xml                    or here
or  DIR/Images/... and DIR/Annotations/..., as LabelMe has them
or  DIR/coast/*.jpg, DIR/forest/*.jpg, ...
or  DIR/metadata.csv                     with the columns file_name, label and perhaps tags
DIR/splits.csv                           file_name, split1, split2, ...: train or test (may be missing)
""",
    places=("labelme8", "labelme"),
)

_UIUC_SPORTS = Layout(
    name="uiuc-sports",
    title="UIUC-Sports: eight sports (Li and Fei-Fei)",
    url="http://vision.stanford.edu/lijiali/event_dataset/",
    steps=(
        "Download event_dataset.rar and unpack it in DIR.",
        "For tags, put uiuc-sports-annotations.txt and uiuc-sports-info.txt of Wang, Blei and Fei-Fei into DIR "
        "(https://github.com/blei-lab/class-slda, sample-data), or LabelMe's XML files beside the pictures.",
    ),
    tree="""
DIR/event_dataset/event_img/             or DIR/event_img/, or DIR itself
    badminton/*.jpg
    bocce/  croquet/  polo/  RockClimbing/  rowing/  sailing/  snowboarding/
DIR/uiuc-sports-info.txt                 a line a picture: badminton image_0001.jpg
DIR/uiuc-sports-annotations.txt          its tags in the same line: athlete, shuttlecock,
or  DIR/metadata.csv                     with the columns file_name, label and perhaps tags
""",
    places=("uiuc_sports", "uiuc-sports"),
)

_MIRFLICKR = Layout(
    name="mirflickr",
    title="MIR Flickr: 25,000 pictures with 38 labels, and up to 975,000 without",
    url="https://press.liacs.nl/mirflickr/mirdownload.html",
    steps=(
        "Download mirflickr25k.zip and unpack it in DIR.",
        "Download mirflickr25k_annotations_v080.zip and unpack it in DIR/mirflickr25k_annotations_v080.",
        "For the pictures without labels, unpack images0.zip to images9.zip (any of them) and tags.zip of MIRFLICKR-1M "
        "in DIR/mirflickr1m.",
    ),
    tree="""
DIR/mirflickr/
    im1.jpg ... im25000.jpg
    meta/tags/tags1.txt ...              a tag a line
    meta/tags_raw/tags1.txt ...          the same as their authors wrote them (may be missing)
DIR/mirflickr25k_annotations_v080/
    animals.txt  baby.txt  baby_r1.txt ...  24 files, and 14 with _r1; a picture's number a line
DIR/mirflickr1m/                         may be missing
    images/0/0.jpg ... images/99/999999.jpg
    tags/0/0.txt ... tags/99/999999.txt
or  DIR/image/, DIR/text/, DIR/labels.npy: the arrays of SupDocNADE's authors
or  DIR/metadata.csv                     with the columns file_name, tags and labels; pictures may be missing
""",
    places=("mirflickr25k", "mirflickr_tags"),
)

_COREL5K = Layout(
    name="corel5k",
    title="Corel 5k: 4,999 pictures with up to five words each (Duygulu and others)",
    url="http://lear.inrialpes.fr/people/guillaumin/data.php",
    steps=(
        "Download corel5k.20091111.tar.bz2 and unpack it in DIR.",
        "Put the photographs, which are not in it, into DIR/images.",
    ),
    tree="""
DIR/corel5k_train_list.txt               a picture a line, without extension: 1000/1000
DIR/corel5k_test_list.txt
DIR/corel5k_train_annot.hvecs            a vector a picture: 1 for each of its words (or .mat)
DIR/corel5k_test_annot.hvecs
DIR/corel5k_dictionary.txt               a word a line (or corel5k_words.txt)
DIR/images/1000/1000.jpeg ...            or .jpg; the class is the folder
or  DIR/metadata.csv                     with the columns file_name, tags and group, perhaps split
""",
    places=("corel5k", "corel5k.20091111"),
)

_TEXT = Layout(
    name="text",
    title="Text in the files of DocNADE: TMN, 20NSshort and others (Gupta and others)",
    url="https://github.com/pgcool/iDocNADEe",
    steps=("Put the sub-folders of its datasets, or your own in the same form, into DIR or DIR/text.",),
    tree="""
DIR/TMN/                                 or DIR/text/TMN/, or DIR itself
    training_docnade.csv                 a document a line: label,word ids (0,24 409 419); several labels: 2:11,24 409
    validation_docnade.csv
    test_docnade.csv
    vocab_docnade.vocab                  a word a line; the first has the id 0
    labels.txt                           a label a line; the first is label 0 (may be missing)
""",
)

LAYOUTS = {layout.name: layout for layout in (_LABELME, _UIUC_SPORTS, _MIRFLICKR, _COREL5K, _TEXT)}
