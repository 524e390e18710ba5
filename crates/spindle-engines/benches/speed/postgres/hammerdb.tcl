# Runs what HammerDB makes for PostgreSQL, without its interface: tclsh hammerdb.tcl HOME check|build|drive SETTING VALUE ...
#
# HOME is a checkout of HammerDB. Its own code writes the script that builds the tables and the script of a timed run, into a
# text window; here the window is a variable, as it is in HammerDB's command line, and the script is then carried out.
# `drive` is one virtual user: it carries out a few transactions, says "ready", waits for a line, and works until it is killed. An error
# of a transaction ends it, told on the standard error.

proc window {action place text} {
    if {$action ne "fastinsert" || $place ne "end"} {
        error "HammerDB does \"$action $place\" with its script, which is not known here"
    }
    append ::script $text
}
interp alias {} .ed_mainFrame.mainwin.textFrame.left.text {} window
proc .ed_mainFrame.notebook {args} {}
proc ed_edit_clear {} {set ::script ""}
proc tk_messageBox {args} {return yes}
proc load_virtual {} {}

set settings [lassign $argv home what]
package require Pgtcl
# Newer than some versions of Pgtcl; it would only print what the server remarks.
if {[info commands pg_notice_handler] eq ""} {
    proc pg_notice_handler {args} {}
}
source $home/modules/tpcccommon-1.0.tm
source $home/src/generic/gentpcc.tcl
source $home/src/postgresql/pgoltp.tcl
# The first of HammerDB's threads looks on, the others are its users.
proc tpcccommon::chk_thread {} {return TRUE}
proc tpcccommon::findvuposition {} {return {2 2}}

# Variables that virtual users share. A user asks for one: whether it is to stop, before its first transaction and then every
# few. At the eighth time, when it is warm, it waits for a line; before that it sleeps in the server, which then counts all that it has
# done so far ("The Cumulative Statistics System": once a second).
namespace eval tsv {}
set questions 0
proc tsv::get {array key} {
    if {[incr ::questions] == 8} {
        pg_result [pg_exec $::lda "select pg_sleep(1.1)"] -clear
        puts ready
        flush stdout
        gets stdin
    }
    return 0
}

set dbdict {}
set opmode Local
set quote_passwords 0
set configpostgresql [dict create tpcc $settings]
switch $what {
    check {exit}
    build {build_pgtpcc}
    drive {loadtimedpgtpcc}
}
# HammerDB's own library for PostgreSQL (pgtclng) takes the formats of values and answers, too, and HammerDB leaves them empty.
if {[info commands pg_exec_params] eq ""} {
    regsub -all {(pg_exec_prepared \$lda \w+) \{\} \{\}} $script {\1} script
}
eval $script
