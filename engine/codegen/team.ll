; A team of threads that run the parts of a job, started when the first job wants them, and waiting from then on.
;
;     void *irgrad_team_run(void *(*part)(void *context, i64 number), void *context, i64 count, i64 threads)
;
; Parts 0 to count - 1 run once each, on at most so many threads, that of the caller among them; which thread runs which
; is left to chance. threads < 1: as many as OMP_NUM_THREADS says, else as there are cores, where what is left of the job
; after the first part takes longer than 30 microseconds. A part returns null, or the record of a failure (`arena.ll`):
; then no further part begins, and the first such record is returned, when all that have begun have ended.
;
; There is one team a process. A caller that finds it at work for another one runs its parts by itself, so that nobody
; waits and any number of threads may call. The caller waits for nobody who has not begun. Threads of the team take no
; signals and have the floating-point environment of the caller. A child of a fork starts its own.
;
;     team    { turn (a mutex: who has the team), guard (a mutex: of what follows), wake, idle (conditions),
;               process, _, threads, seats: how many more may join (atomic), active: how many have (atomic),
;               part, context, count, next (atomic), failed (atomic), floating-point environment }
;
; Sizes of the types are those of glibc on x86-64.

%union.pthread_mutex_t = type { %struct.__pthread_mutex_s }
%struct.__pthread_mutex_s = type { i32, i32, i32, i32, i32, i16, i16, %struct.__pthread_internal_list }
%struct.__pthread_internal_list = type { ptr, ptr }
%union.pthread_cond_t = type { %struct.__pthread_cond_s }
%struct.__pthread_cond_s = type { %union.__atomic_wide_counter, %union.__atomic_wide_counter, [2 x i32], i32, i32, [2 x i32], i32, i32 }
%union.__atomic_wide_counter = type { i64 }
%struct.fenv_t = type { i16, i16, i16, i16, i16, i16, i32, i16, i16, i32, i16, i16, i32 }
%struct.__sigset_t = type { [16 x i64] }
%union.pthread_attr_t = type { i64, [48 x i8] }
%struct.timespec = type { i64, i64 }
%struct.cpu_set_t = type { [16 x i64] }
@irgrad.team.cores = internal global i64 0, align 8
@irgrad.team.variable = private constant [16 x i8] c"OMP_NUM_THREADS\00", align 1
@irgrad.team = internal global { %union.pthread_mutex_t, %union.pthread_mutex_t, %union.pthread_cond_t, %union.pthread_cond_t, i32, [4 x i8], i64, i64, i64, ptr, ptr, i64, i64, ptr, %struct.fenv_t } zeroinitializer, align 8

define ptr @irgrad_team_run(ptr %run, ptr %context, i64 %count, i64 %threads) {
entry:
  %all.i = alloca %struct.__sigset_t, align 8
  %before.i = alloca %struct.__sigset_t, align 8
  %how.i = alloca %union.pthread_attr_t, align 8
  %thread.i = alloca i64, align 8
  %t.i105 = alloca %struct.timespec, align 8
  %t.i = alloca %struct.timespec, align 8
  %set.i = alloca %struct.cpu_set_t, align 8
  %cmp = icmp slt i64 %threads, 1
  br i1 %cmp, label %if.then, label %if.end13
if.then:
  %atomic-load.i = load atomic i64, ptr @irgrad.team.cores seq_cst, align 8
  %tobool.not.i = icmp eq i64 %atomic-load.i, 0
  br i1 %tobool.not.i, label %if.end.i, label %cores.exit
if.end.i:
  %call.i = tail call ptr @getenv(ptr nonnull @irgrad.team.variable)
  %tobool1.not.i = icmp eq ptr %call.i, null
  br i1 %tobool1.not.i, label %if.then3.i, label %cond.end.i
cond.end.i:
  %call2.i = tail call i64 @strtol(ptr nonnull %call.i, ptr null, i32 10)
  %cmp.i = icmp slt i64 %call2.i, 1
  br i1 %cmp.i, label %if.then3.i, label %if.end11.i
if.then3.i:
  %call4.i = call i32 @sched_getaffinity(i32 0, i64 128, ptr nonnull %set.i)
  %tobool5.not.i = icmp eq i32 %call4.i, 0
  br i1 %tobool5.not.i, label %cond.false7.i, label %if.end11.i
cond.false7.i:
  %call8.i = call i32 @__sched_cpucount(i64 128, ptr nonnull %set.i)
  %0 = sext i32 %call8.i to i64
  br label %if.end11.i
if.end11.i:
  %found.0.i = phi i64 [ %call2.i, %cond.end.i ], [ %0, %cond.false7.i ], [ 1, %if.then3.i ]
  store atomic i64 %found.0.i, ptr @irgrad.team.cores seq_cst, align 8
  br label %cores.exit
cores.exit:
  %retval.0.i = phi i64 [ %found.0.i, %if.end11.i ], [ %atomic-load.i, %if.then ]
  %cmp1 = icmp sgt i64 %retval.0.i, 1
  %cmp2 = icmp sgt i64 %count, 1
  %or.cond = and i1 %cmp2, %cmp1
  br i1 %or.cond, label %if.then3, label %if.end13
if.then3:
  %call.i104 = call i32 @clock_gettime(i32 1, ptr nonnull %t.i)
  %1 = load i64, ptr %t.i, align 8
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %t.i, i64 8
  %2 = load i64, ptr %tv_nsec.i, align 8
  %call5 = call ptr %run(ptr %context, i64 0)
  %tobool.not = icmp eq ptr %call5, null
  br i1 %tobool.not, label %if.end, label %return
if.end:
  %call.i106 = call i32 @clock_gettime(i32 1, ptr nonnull %t.i105)
  %3 = load i64, ptr %t.i105, align 8
  %tv_nsec.i108 = getelementptr inbounds nuw i8, ptr %t.i105, i64 8
  %4 = load i64, ptr %tv_nsec.i108, align 8
  %reass.add = sub i64 %3, %1
  %reass.mul = mul i64 %reass.add, 1000000000
  %add.i109 = sub i64 %4, %2
  %sub = add i64 %add.i109, %reass.mul
  %sub8 = add nsw i64 %count, -1
  %mul = mul nsw i64 %sub, %sub8
  %cmp9 = icmp slt i64 %mul, 30000
  %spec.select = select i1 %cmp9, i64 1, i64 %retval.0.i
  br label %if.end13
if.end13:
  %first.0 = phi i64 [ 0, %entry ], [ 1, %if.end ], [ 0, %cores.exit ]
  %threads.addr.0 = phi i64 [ %threads, %entry ], [ %spec.select, %if.end ], [ %retval.0.i, %cores.exit ]
  %sub14 = sub nsw i64 %count, %first.0
  %spec.select102 = call i64 @llvm.smin.i64(i64 %threads.addr.0, i64 %sub14)
  %spec.store.select = call i64 @llvm.smin.i64(i64 %spec.select102, i64 64)
  %call22 = call i32 @getpid()
  %cmp23 = icmp slt i64 %spec.select102, 2
  %5 = load i32, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 176), align 8
  %cmp25.not = icmp eq i32 %5, %call22
  %or.cond103 = select i1 %cmp23, i1 true, i1 %cmp25.not
  br i1 %or.cond103, label %if.end37, label %land.lhs.true26
land.lhs.true26:
  %call27 = call i32 @pthread_mutex_trylock(ptr nonnull @irgrad.team)
  %tobool28.not = icmp eq i32 %call27, 0
  br i1 %tobool28.not, label %if.then29, label %lor.lhs.false
if.then29:
  %6 = load i32, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 176), align 8
  %tobool30.not = icmp eq i32 %6, 0
  br i1 %tobool30.not, label %if.end35, label %if.then31
if.then31:
  %call32 = call i32 @pthread_mutex_init(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40), ptr null)
  %call33 = call i32 @pthread_cond_init(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 80), ptr null)
  %call34 = call i32 @pthread_cond_init(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 128), ptr null)
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200) seq_cst, align 8
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 184), align 8
  br label %if.end35
if.end35:
  store i32 %call22, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 176), align 8
  %call36 = call i32 @pthread_mutex_unlock(ptr nonnull @irgrad.team)
  br label %lor.lhs.false
if.end37:
  br i1 %cmp23, label %if.then41, label %lor.lhs.false
lor.lhs.false:
  %call39 = call i32 @pthread_mutex_trylock(ptr nonnull @irgrad.team)
  %tobool40.not = icmp eq i32 %call39, 0
  br i1 %tobool40.not, label %if.end49, label %if.then41
if.then41:
  %cmp42124 = icmp slt i64 %first.0, %count
  br i1 %cmp42124, label %for.body, label %return
for.cond:
  %inc48 = add nuw i64 %first.1125, 1
  %exitcond127.not = icmp eq i64 %inc48, %count
  br i1 %exitcond127.not, label %return, label %for.body
for.body:
  %first.1125 = phi i64 [ %inc48, %for.cond ], [ %first.0, %if.then41 ]
  %call44 = call ptr %run(ptr %context, i64 %first.1125)
  %tobool45.not = icmp eq ptr %call44, null
  br i1 %tobool45.not, label %for.cond, label %return
if.end49:
  %call50 = call i32 @pthread_mutex_lock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %7 = load i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 184), align 8
  %sub51 = add nsw i64 %spec.store.select, -1
  %cmp52 = icmp slt i64 %7, %sub51
  br i1 %cmp52, label %if.then53, label %if.end55
if.then53:
  %call.i110 = call i32 @sigfillset(ptr nonnull %all.i)
  %call1.i = call i32 @pthread_sigmask(i32 2, ptr nonnull %all.i, ptr nonnull %before.i)
  %call2.i111 = call i32 @pthread_attr_init(ptr nonnull %how.i)
  %call3.i = call i32 @pthread_attr_setdetachstate(ptr nonnull %how.i, i32 1)
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 184), align 8
  %cmp7.i = icmp slt i64 %8, %sub51
  br i1 %cmp7.i, label %land.rhs.i, label %grow.exit
land.rhs.i:
  %call4.i112 = call i32 @pthread_create(ptr nonnull %thread.i, ptr nonnull %how.i, ptr nonnull @irgrad.team.serve, ptr null)
  %tobool.not.i113 = icmp eq i32 %call4.i112, 0
  br i1 %tobool.not.i113, label %while.body.i, label %grow.exit
while.body.i:
  %9 = load i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 184), align 8
  %inc.i = add nsw i64 %9, 1
  store i64 %inc.i, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 184), align 8
  %cmp.i114 = icmp slt i64 %inc.i, %sub51
  br i1 %cmp.i114, label %land.rhs.i, label %grow.exit
grow.exit:
  %call5.i = call i32 @pthread_attr_destroy(ptr nonnull %how.i)
  %call6.i = call i32 @pthread_sigmask(i32 2, ptr nonnull %before.i, ptr null)
  br label %if.end55
if.end55:
  store ptr %run, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 208), align 8
  store ptr %context, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 216), align 8
  store i64 %count, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 224), align 8
  store atomic i64 %first.0, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 232) seq_cst, align 8
  store atomic ptr null, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240) seq_cst, align 8
  %call56 = call i32 @fegetenv(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 248))
  store atomic i64 %sub51, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  %call58 = call i32 @pthread_cond_broadcast(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 80))
  %call59 = call i32 @pthread_mutex_unlock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %10 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 208), align 8
  %11 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 216), align 8
  %12 = load i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 224), align 8
  %13 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 232), i64 1 monotonic, align 8
  %cmp.not13.i = icmp slt i64 %13, %12
  br i1 %cmp.not13.i, label %lor.lhs.false.i, label %land.rhs.preheader
lor.lhs.false.i:
  %14 = phi i64 [ %20, %if.end8.i ], [ %13, %if.end55 ]
  %15 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240) monotonic, align 8
  %tobool.not.i115 = icmp eq i64 %15, 0
  br i1 %tobool.not.i115, label %if.end.i116, label %land.rhs.preheader
if.end.i116:
  %call.i117 = call ptr %10(ptr %11, i64 %14)
  %tobool2.not.i = icmp eq ptr %call.i117, null
  br i1 %tobool2.not.i, label %if.end8.i, label %if.then3.i118
if.then3.i118:
  %16 = ptrtoint ptr %call.i117 to i64
  %17 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240), i64 0, i64 %16 seq_cst seq_cst, align 8
  %18 = extractvalue { i64, i1 } %17, 1
  br i1 %18, label %if.end8.i, label %land.lhs.true.i
land.lhs.true.i:
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %call.i117, i64 32
  %19 = load i64, ptr %arrayidx.i, align 8
  %tobool5.not.i119 = icmp eq i64 %19, 0
  br i1 %tobool5.not.i119, label %if.end8.i, label %if.then6.i
if.then6.i:
  call void @free(ptr nonnull %call.i117)
  br label %if.end8.i
if.end8.i:
  %20 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 232), i64 1 monotonic, align 8
  %cmp.not.i = icmp slt i64 %20, %12
  br i1 %cmp.not.i, label %lor.lhs.false.i, label %land.rhs.preheader
land.rhs.preheader:
  br label %land.rhs
land.rhs:
  %k.0121 = phi i32 [ %inc66, %for.body64 ], [ 0, %land.rhs.preheader ]
  %21 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200) monotonic, align 8
  %tobool63.not = icmp eq i64 %21, 0
  br i1 %tobool63.not, label %for.end67, label %for.body64
for.body64:
  call void asm sideeffect "", "~{memory}"()
  %inc66 = add nuw nsw i32 %k.0121, 1
  %exitcond.not = icmp eq i32 %inc66, 3000
  br i1 %exitcond.not, label %for.end67, label %land.rhs
for.end67:
  %call68 = call i32 @pthread_mutex_lock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  store atomic i64 0, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  %atomic-load122 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200) seq_cst, align 8
  %tobool69.not123 = icmp eq i64 %atomic-load122, 0
  br i1 %tobool69.not123, label %while.end, label %while.body
while.body:
  %call70 = call i32 @pthread_cond_wait(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 128), ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %atomic-load = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200) seq_cst, align 8
  %tobool69.not = icmp eq i64 %atomic-load, 0
  br i1 %tobool69.not, label %while.end, label %while.body
while.end:
  %atomic-load72 = load atomic ptr, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240) seq_cst, align 8
  %call73 = call i32 @pthread_mutex_unlock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %call74 = call i32 @pthread_mutex_unlock(ptr nonnull @irgrad.team)
  br label %return
return:
  %retval.0 = phi ptr [ %atomic-load72, %while.end ], [ %call5, %if.then3 ], [ null, %if.then41 ], [ %call44, %for.body ], [ null, %for.cond ]
  ret ptr %retval.0
}
declare i32 @getpid()
declare i32 @pthread_mutex_trylock(ptr noundef)
declare i32 @pthread_mutex_init(ptr noundef, ptr noundef)
declare i32 @pthread_cond_init(ptr noundef, ptr noundef)
declare i32 @pthread_mutex_unlock(ptr noundef)
declare i32 @pthread_mutex_lock(ptr noundef)
declare i32 @fegetenv(ptr noundef)
declare i32 @pthread_cond_broadcast(ptr noundef)
declare i32 @pthread_cond_wait(ptr noundef, ptr noundef)
declare ptr @getenv(ptr)
declare i64 @strtol(ptr readonly, ptr, i32 noundef)
declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef)
declare i32 @__sched_cpucount(i64 noundef, ptr noundef)
declare i32 @clock_gettime(i32 noundef, ptr noundef)
declare i32 @sigfillset(ptr noundef)
declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef)
declare i32 @pthread_attr_init(ptr noundef)
declare i32 @pthread_attr_setdetachstate(ptr noundef, i32 noundef)
declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef)

define internal noalias nonnull ptr @irgrad.team.serve(ptr readnone %unused) {
entry:
  %call = tail call i32 @pthread_mutex_lock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  br label %for.cond
for.cond:
  %atomic-load = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  %tobool.not = icmp eq i64 %atomic-load, 0
  br i1 %tobool.not, label %if.then, label %if.end
if.then:
  %call1 = tail call i32 @pthread_mutex_unlock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  br label %land.rhs
land.rhs:
  %k.018 = phi i32 [ 0, %if.then ], [ %inc, %for.body ]
  %0 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) monotonic, align 8
  %tobool3.not = icmp eq i64 %0, 0
  br i1 %tobool3.not, label %for.body, label %for.end
for.body:
  tail call void asm sideeffect "", "~{memory}"()
  %inc = add nuw nsw i32 %k.018, 1
  %exitcond.not = icmp eq i32 %inc, 3000
  br i1 %exitcond.not, label %for.end, label %land.rhs
for.end:
  %call4 = tail call i32 @pthread_mutex_lock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  br label %if.end
if.end:
  %atomic-load519 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  %tobool6.not20 = icmp eq i64 %atomic-load519, 0
  br i1 %tobool6.not20, label %while.body, label %while.end
while.body:
  %call8 = tail call i32 @pthread_cond_wait(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 80), ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %atomic-load5 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192) seq_cst, align 8
  %tobool6.not = icmp eq i64 %atomic-load5, 0
  br i1 %tobool6.not, label %while.body, label %while.end
while.end:
  %1 = atomicrmw sub ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 192), i64 1 seq_cst, align 8
  %2 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200), i64 1 seq_cst, align 8
  %call9 = tail call i32 @fesetenv(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 248))
  %call10 = tail call i32 @pthread_mutex_unlock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %3 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 208), align 8
  %4 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 216), align 8
  %5 = load i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 224), align 8
  %6 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 232), i64 1 monotonic, align 8
  %cmp.not13.i = icmp slt i64 %6, %5
  br i1 %cmp.not13.i, label %lor.lhs.false.i, label %claim.exit
lor.lhs.false.i:
  %7 = phi i64 [ %13, %if.end8.i ], [ %6, %while.end ]
  %8 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240) monotonic, align 8
  %tobool.not.i = icmp eq i64 %8, 0
  br i1 %tobool.not.i, label %if.end.i, label %claim.exit
if.end.i:
  %call.i = tail call ptr %3(ptr %4, i64 %7)
  %tobool2.not.i = icmp eq ptr %call.i, null
  br i1 %tobool2.not.i, label %if.end8.i, label %if.then3.i
if.then3.i:
  %9 = ptrtoint ptr %call.i to i64
  %10 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 240), i64 0, i64 %9 seq_cst seq_cst, align 8
  %11 = extractvalue { i64, i1 } %10, 1
  br i1 %11, label %if.end8.i, label %land.lhs.true.i
land.lhs.true.i:
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %call.i, i64 32
  %12 = load i64, ptr %arrayidx.i, align 8
  %tobool5.not.i = icmp eq i64 %12, 0
  br i1 %tobool5.not.i, label %if.end8.i, label %if.then6.i
if.then6.i:
  tail call void @free(ptr nonnull %call.i)
  br label %if.end8.i
if.end8.i:
  %13 = atomicrmw add ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 232), i64 1 monotonic, align 8
  %cmp.not.i = icmp slt i64 %13, %5
  br i1 %cmp.not.i, label %lor.lhs.false.i, label %claim.exit
claim.exit:
  %call12 = tail call i32 @pthread_mutex_lock(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 40))
  %14 = atomicrmw sub ptr getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 200), i64 1 seq_cst, align 8
  %tobool13.not = icmp eq i64 %14, 1
  br i1 %tobool13.not, label %if.then14, label %for.cond.backedge
if.then14:
  %call15 = tail call i32 @pthread_cond_signal(ptr nonnull getelementptr inbounds nuw (i8, ptr @irgrad.team, i64 128))
  br label %for.cond.backedge
for.cond.backedge:
  br label %for.cond
}
declare i32 @pthread_attr_destroy(ptr noundef)
declare i32 @fesetenv(ptr noundef)
declare i32 @pthread_cond_signal(ptr noundef)
declare void @free(ptr allocptr)
declare i64 @llvm.smin.i64(i64, i64)
