; What a guard does with an exception of the C++ runtime that leaves the function which it calls.

@irgrad.tape.foreign = private unnamed_addr constant [31 x i8] c"an exception of another origin\00"
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
declare void @__cxa_rethrow()
declare void @_ZSt9terminatev()
declare ptr @__cxa_current_exception_type()
declare ptr @__cxa_demangle(ptr, ptr, ptr, ptr)
declare void @free(ptr)
declare i64 @irgrad.tape.exception(ptr, ptr)
declare ptr @irgrad.tape.guard_of()
declare void @irgrad.tape.fail(i64, i64, i64, ptr)

; an exception is thrown at %where: noted in the guard, in words that are of no use until it ends
define internal void @irgrad.tape.throwing(ptr %thing, ptr %where) noinline optnone cold nounwind {
entry:
  %guard = call ptr @irgrad.tape.guard_of()
  %none = icmp eq ptr %guard, null
  br i1 %none, label %out, label %note
note:
  %thingp = getelementptr i8, ptr %guard, i64 528
  store ptr %thing, ptr %thingp, align 8
  %wherep = getelementptr i8, ptr %guard, i64 552
  store ptr %where, ptr %wherep, align 8
  br label %out
out:
  ret void
}

; where the source says that nothing is thrown, something is
define internal void @irgrad.tape.ends(ptr %header) noinline optnone cold noreturn personality ptr @__gxx_personality_v0 {
entry:
  %guard = call ptr @irgrad.tape.guard_of()
  %none = icmp eq ptr %guard, null
  br i1 %none, label %die, label %again
die:
  call void @_ZSt9terminatev()
  unreachable
again:
  %object = call ptr @__cxa_begin_catch(ptr %header)
  invoke void @__cxa_rethrow() to label %never unwind label %thrown
thrown:
  %pad = landingpad { ptr, i32 } catch ptr @_ZTISt9exception catch ptr null
  %same = extractvalue { ptr, i32 } %pad, 0
  %kind = extractvalue { ptr, i32 } %pad, 1
  %standard = call i32 @llvm.eh.typeid.for.p0(ptr @_ZTISt9exception)
  %says = icmp eq i32 %kind, %standard
  call void @irgrad.tape.caught(ptr %guard, ptr %same, i1 %says)
  unreachable
never:
  unreachable
}

; %standard: it is a std::exception. Where it was thrown is known if it is the one that was noted last.
define internal void @irgrad.tape.caught(ptr %guard, ptr %header, i1 %standard) noinline optnone cold noreturn {
entry:
  %status = alloca i32, align 4
  %thing = getelementptr i8, ptr %header, i64 32
  %notedp = getelementptr i8, ptr %guard, i64 528
  %noted = load ptr, ptr %notedp, align 8
  %wherep = getelementptr i8, ptr %guard, i64 552
  %last = load ptr, ptr %wherep, align 8
  %same = icmp eq ptr %noted, %thing
  %where = select i1 %same, ptr %last, ptr null
  %object = call ptr @__cxa_begin_catch(ptr %header)
  %info = call ptr @__cxa_current_exception_type()
  %known = icmp ne ptr %info, null
  br i1 %known, label %named, label %ask
named:
  %namep = getelementptr i8, ptr %info, i64 8
  %mangled = load ptr, ptr %namep, align 8
  %plain = call ptr @__cxa_demangle(ptr %mangled, ptr null, ptr null, ptr %status)
  %failed = icmp eq ptr %plain, null
  %name = select i1 %failed, ptr %mangled, ptr %plain
  br label %ask
ask:
  %type = phi ptr [ @irgrad.tape.foreign, %entry ], [ %name, %named ]
  %memory = phi ptr [ null, %entry ], [ %plain, %named ]
  br i1 %standard, label %say, label %told
say:
  %table = load ptr, ptr %object, align 8
  %slot = getelementptr i8, ptr %table, i64 16
  %what = load ptr, ptr %slot, align 8
  %answer = call ptr %what(ptr %object)
  br label %told
told:
  %text = phi ptr [ null, %ask ], [ %answer, %say ]
  %number = call i64 @irgrad.tape.exception(ptr %type, ptr %text)
  call void @free(ptr %memory)
  call void @__cxa_end_catch()
  call void @irgrad.tape.fail(i64 %number, i64 0, i64 -6, ptr %where)
  unreachable
}
