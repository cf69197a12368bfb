"""Two hundred texts that only look as if they had codes, for `check_alignment.py`."""

from __future__ import annotations

_FORMULAS = """\
Dissolve 5 g of CuSO4.5H2O in water|C6H12O6 + 6 O2 gives 6 CO2 + 6 H2O|Fe(OH)3 is a brown solid|Weigh Na2CO3.10H2O
H2SO4 and Ca(OH)2 react|KAl(SO4)2.12H2O forms crystals|The ion [Cu(NH3)4]2+ is blue|Mix 2.5 mL of 0.1 M HCl with NaOH
Isotopes C-12, C-13 and C-14|U-235 and U-238 differ in neutrons|MgSO4.7H2O is used as a bath salt|Balance 2 Al + 3 CuCl2
Vitamin B-12 and B.6|He-3 is rare|The polymer (C2H4)n|NH4NO3 is a fertilizer|Ozone is O3, and N2O is laughing gas
Use Al2(SO4)3.18H2O|CaCO3 in chalk|P4O10 takes up water"""
_ROOMS = """\
Meet in Room 3.G.2 after lunch|Room B-204 is free|The lab is in Rm. 4.NF.1|Building 5, room 12-A-3|Locker W.4.12
Hall L.2.1 has the projector|Apt. 3-B-12|Suite 2.OA.4|Gate K.CC.1 opens at 8|Go to room RL.4.1, then to room 3.14
Parking lot G-C.2|Classroom 4-A, bring chairs|The gym is next to Room 1.MD.2|Room MS-LS1-1 has no sink|Exit 4.MD.1"""
_VERSIONS = """\
Install version 3.2.1b of the app|Python 3.11.4 or later|Scratch 3.29.1|firmware v2.4.10-rc1|Version 4.NF.2 fixes bugs
Chrome 119.0.6045.105|micro:bit V2.21|release 1.0.0-beta.3|Node 20.9.0|iOS 17.1.2|build 2023.11.07-a|Word 16.0.1
kernel 6.5.0-14-generic|Update 5.4.3a|the file format PDF 1.7|USB 3.2 Gen 2|HTML5 and CSS3|Bluetooth 5.3|Wi-Fi 802.11ac
Version RL.4.1 of the reading app|GeoGebra 5.2.8|Use Java 1.8.0_392|version 2.0.1b3-dev|Release K.CC.2|v5.NF.B.4"""
_CITATIONS = """\
(Smith, 2019, p. 34)|see Figure 3.A.1|Table 4.NF.2 lists prices|arXiv:1706.03762v5|doi:10.1000/182.3a.4|ISBN 978-3-16-148410-0
Vol. 12, No. 3, pp. 45-67|Chapter 4.G.2 of the guide|Section 5.NF.1 of the report|Lee et al., 2021b, 3(2), 14-19|Ref. [12a]
Jones v. Smith, 3 F.3d 12|42 U.S.C. 1983|RFC 2616, section 4.2.1a|ISO 9001-2-A|Appendix W.4.2|Equation 3.OA.1|Fig. G.CO.3
Theorem 2.NBT.4|ISSN 1234-567X|Act 3, scene 2, lines 4-9|Op. 27, No. 2|BWV 846a|K. 525|Table SL.3.1"""
_DATES = """\
Due on 3-Mar-2024|2024-05-01T10:30|4/12/2023, 10:15 a.m.|week 2024-W05-1|12.3.2024|Q3-2023|Monday 4.10.|8:15-9:00
May 5th, 1862|from 1914 to 1918|the 1960s|Term 2, week 3|2023-24 school year|10.30 to 11.15|Period 3, day B
the 4th of July 1776|3 B.C.E.|20-min break at 9.45|5.Nov.1605|11-11-1918"""
_PARTS = """\
part no. A-12-B3|SKU 4-MD-2201|the screw M4-12-B3|bearing 6204-2RS-C3|resistor R12-47K-5|LEGO 3001.4a|order 5-NF-88
Serial number 3.NF.A.1|a 9V battery PP3-6F22|model RL-4-12X|cable CAT-6A-10M|lamp E27-60W-230V|filter HEPA-13-B|lens 50-1.8-G
Arduino pin A0-D13-5V|LED strip WS2812B-5V-60|sensor HC-SR04-3V|motor NEMA-17-42|card MIFARE-1K-S50|valve DN-25-PN16
kit 2.G.1-box"""
_VERSES = """\
John 3:16 and Luke 6:31|1 Cor. 13:4-7|Ps. 23:1-4|Gen 1.1-2.3|Matthew 5:3-12|Ecclesiastes 3:1|Surah 2:255|Rig Veda 10.129
Exodus 20:1-17|Micah 6:8|Rom. 12:9-21|Analects 15.24|Iliad 1.1-7|Odyssey 9.366|Gita 2.47"""
_ADDRESSES = """\
https://example.org/3.NF.A.1/page|see www.example.com/RL.4.1|http://example.edu/lessons/4-PS3-1.html|mail k.cc.1@example.org
Open lesson_3.NF.A.1_v2.docx|the file 4.MD.A.1.pdf|ftp://example.net/2.OA.1.zip|https://example.org/?code=5.NF.B.3
/home/ann/RL.4.1/notes|C:\\\\units\\\\3.OA.A.1|https://youtu.be/3G-4NF-1a|example.com/8.EE.1|video_RI.5.2_final.mp4
git@example.org:3.NBT.1|https://example.org/a/b/1B-AP-10|file:///tmp/D2.Eco.1.3-5|SL.4.1.png|worksheet 6.RP.A.1.docx
https://example.org/#3.G.1|www.example.org/MS-LS1-1|~/work/2.NBT.4/plan"""
_EXPRESSIONS = """\
f(x)=3x-1 and g(x)=2x+5|3.14 times r squared|2-x-3 = 5|x=3.G.2|(a-b)(a+b)|5x-3y=2|1/2 + 1/4 = 3/4|y = 4.5x - 2.1
3 x 4 = 12|log2(8)=3|P(A)=0.25|a1, a2 and a3|sin(2x)-1|6.02e23|10-3-2|4:3 ratio|25% of 80|3(4-1)(2)|2.5-1.75|n-1 terms"""
_ROADS = """\
Take I-95 to exit 4B|US-101 north|Highway W.4.2|K-10 in the west|M-28 along the lake|Route 66|the A1.M motorway|County Road 3.G.1
SR-520 bridge|Bus 4-A-2|Rte. L.1.2|FM-1960 and RM-620|Flight LH-4-12|Exit 3.MD.4"""
_OTHERS = """\
The MP3 player is on the shelf|1.e4 e5 2.Nf3 Nc6 3.Bb5 a6|a 5G network|R2-D2 and C-3PO|The 4H club|K-12 schools|a PS4 game
Vitamin D2|a B2B shop|Type 2 diabetes|a 3-D printer|20-20 vision|MI6 and 007|the U-2 flight|a 2x4 board"""


def lookalikes() -> list[str]:
    """Return the texts."""
    groups = (
        _FORMULAS, _ROOMS, _VERSIONS, _CITATIONS, _DATES, _PARTS, _VERSES, _ADDRESSES, _EXPRESSIONS,
        _ROADS, _OTHERS,
    )  # fmt: skip
    return [text for group in groups for line in group.splitlines() for text in line.split("|")]
