"""C programs on the bits of active floats: name -> (helpers, body of `double f(const double *x, long k)`)."""

# ruff: noqa: E501
from __future__ import annotations

HEADER = """#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
"""

REFUSED = {
    "intptr_hi": ("", "double d = x[0]*x[1]; ((int*)&d)[1] = 0x3ff80000 + (int)k; return d*x[2];"),
    "memcpy_half_hi": ("", "double d = x[0]*x[1]; int h = 0x3ff00000; memcpy((char*)&d+4, &h, 4); return d*x[2];"),
    "array_half_dyn": ("", "double d[4]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]; ((uint32_t*)d)[2*k+1]=0x3ff00000; return d[0]*d[1]+d[2];"),
    "heap_half": ("", "double *d=malloc(24); for(int i=0;i<3;i++) d[i]=x[i]*x[i]; int *q=(int*)d; for(int i=0;i<3;i++) q[2*i+1]=0x3ff00000+i; double r=d[0]*d[1]+d[2]; free(d); return r;"),
    "helper_half_hi": ("static NOINLINE void cut(unsigned*p,unsigned k){ p[1]=0x3ff00000u+k; }", "double d=x[0]*x[1]; cut((unsigned*)&d,(unsigned)k); return d*x[2];"),
    "finv": ("", "float n=(float)(x[0]*x[1]+2), h=n*0.5f; int i; memcpy(&i,&n,4); i=0x5f3759df-(i>>1); memcpy(&n,&i,4); n=n*(1.5f-h*n*n); return n*x[2];"),
    "finv64": ("", "double n=x[0]*x[1]+2, h=n*0.5; long i; memcpy(&i,&n,8); i=0x5fe6eb50c7b537a9L-(i>>1); memcpy(&n,&i,8); n=n*(1.5-h*n*n); return n*x[2];"),
    "expadd": ("", "union{double d;uint64_t u;} v; v.d=x[0]*x[1]; v.u += 1ULL<<52; return v.d*x[2];"),
    "expadd_hi": ("", "double d=x[0]*x[1]; ((uint32_t*)&d)[1] += 1u<<20; return d*x[2];"),
    "frexp_hand": ("", "union{double d;uint64_t u;} v; v.d=x[0]*x[1]; int e=(int)(v.u>>52&0x7ff)-1022; v.u=(v.u&0x800fffffffffffffULL)|0x3fe0000000000000ULL; return v.d*x[2]+e;"),
    "frexp_hand_hi": ("", "double d=x[0]*x[1]; uint32_t h=((uint32_t*)&d)[1]; int e=(int)(h>>20&0x7ff)-1022; ((uint32_t*)&d)[1]=(h&0x800fffff)|0x3fe00000; return d*x[2]+e;"),
    "fastexp": ("", "union{double d;struct{int lo,hi;}n;} v; v.n.lo=0; v.n.hi=(int)(1512775*x[0]+1072632447); return v.d*x[2];"),
    "fastexp64": ("", "int64_t i=(int64_t)(6497320848556798.0*x[0]+4606853616395542500.0); double d; memcpy(&d,&i,8); return d*x[2];"),
    "fastlog": ("", "float f=(float)(x[0]*x[1]+1); uint32_t i; memcpy(&i,&f,4); return ((double)i*1.1920928955078125e-7-126.94269504)*x[2];"),
    "fastlog64": ("", "double f=x[0]*x[1]+1; uint64_t i; memcpy(&i,&f,8); return ((double)i*2.220446049250313e-16-1022.9)*x[2];"),
    "hiword_num_arg": ("", "uint32_t h=((const uint32_t*)x)[1]; return (double)h*1e-6*x[2];"),
    "mant_num": ("", "double d=x[0]*x[1]; uint64_t u; memcpy(&u,&d,8); return (double)(u&0xfffffffffffffULL)*0x1p-52*x[2];"),
    "word_swap_two": ("", "double a=x[0]*x[1], b=x[1]*x[2]; uint32_t w[2],v[2]; memcpy(w,&a,8); memcpy(v,&b,8); w[0]=v[0]; double e; memcpy(&e,w,8); return e*x[2];"),
    "short_store_hi": ("", "double d=x[0]*x[1]; ((uint16_t*)&d)[3]=0x3ff0; return d*x[2];"),
    "byte_store_hi": ("", "double d=x[0]*x[1]; ((unsigned char*)&d)[7]=0x3f; return d*x[2];"),
    "float_in_double_store": ("", "double d=x[0]*x[1]; ((float*)&d)[1]=(float)x[2]; return d*x[2];"),
    "float_in_double_const": ("", "double d=x[0]*x[1]; ((float*)&d)[0]=1.0f; return d*x[2];"),
    "float_read_hi": ("", "double d=x[0]*x[1]; float *q=(float*)&d; return q[1]*x[2];"),
    "memset_hi": ("", "double d=x[0]*x[1]; memset((char*)&d+4,0x3f,4); return d*x[2];"),
    "memcpy_floats_as_doubles": ("", "float g[4]; for(int i=0;i<3;i++) g[i]=(float)(x[i]*x[i]); g[3]=(float)x[0]+1; double e[2]; memcpy(e,g,16); return e[0]+e[1];"),
    "global_half_hi": ("double G;", "G=x[0]*x[1]; ((uint32_t*)&G)[1]=0x3ff00000u+(unsigned)k; return G*x[2];"),
    "nextafter_hand": ("", "double d=x[0]*x[1]; uint64_t u; memcpy(&u,&d,8); u+=1; memcpy(&d,&u,8); return d*x[2];"),
    "sort_key": ("", "double d=x[0]*x[1]; int64_t u; memcpy(&u,&d,8); u^=(u>>63)&0x7fffffffffffffffLL; return (double)u*1e-18*x[2];"),
    "int_float_scale": ("", "float g=(float)(x[0]*x[1]); int i; memcpy(&i,&g,4); i+= (int)k<<23; memcpy(&g,&i,4); return g*x[2];"),
    "noinline_get_hi": ("static NOINLINE int hi(double d){ int w[2]; memcpy(w,&d,8); return w[1]; }", "return (double)hi(x[0]*x[1])*1e-7*x[2];"),
    "noinline_ret_int": ("static NOINLINE long bits(double d){ long w; memcpy(&w,&d,8); return w; } static NOINLINE double mk(long w){ double d; memcpy(&d,&w,8); return d; }", "return mk(bits(x[0]*x[1])+(1L<<52))*x[2];"),
    "expm1_fdlibm": ("", "double d=x[0]*x[1]+1; uint32_t h=((uint32_t*)&d)[1]; double y=d*d; ((uint32_t*)&y)[1]+= (unsigned)(k<<20); return h>0x3ff00000 ? y*x[2] : d;"),
    "double_as_float_pair_arith": ("", "union{double d; struct{float a,b;} s;} u; u.s.a=(float)x[0]; u.s.b=(float)x[1]; double q=u.d; return q*x[2];"),
    "half_dyn_heap_escape": ("", "double **t=malloc(16); double *d=malloc(16); t[0]=d; d[0]=x[0]*x[1]; d[1]=x[2]; ((int*)t[0])[1]=0x3ff00000; double r=d[0]*x[2]+d[1]; free(d); free(t); return r;"),
    "cbrt_guess": ("", "double v=x[0]*x[1]+1; union{double d;uint32_t i[2];} u; u.d=0; u.i[1]=((uint32_t*)&v)[1]/3+715094163; double t=u.d; t=t-(t*t*t-v)/(3*t*t); t=t-(t*t*t-v)/(3*t*t); return t*x[2];"),
    "store_after_call": ("static double S; NOINLINE static void sink(double*p){ S+=*p; }", "double d=x[0]*x[1]; sink(&d); ((int*)&d)[1]=0x3ff00000; double r=d; sink(&d); return r*x[2];"),
    "bitfield_double": ("", "union{double d; struct{uint64_t m:52,e:11,s:1;} b;} u; u.d=x[0]*x[1]; u.b.e=1023; return u.d*x[2];"),
    "exp_impl_bump": ("", "double t=x[0]*x[1], s=0; int n=(int)(t*1.4426950408889634); double r=t-n*0.6931471805599453; s=1; for(int i=14;i>0;i--) s=1+r*s/i; ((int*)&s)[1]+=n<<20; return s*x[2];"),
    "words_copy_rev": ("", "double d[3],e[3]={1,1,1}; for(int i=0;i<3;i++) d[i]=x[i]*x[i]; for(int i=0;i<6;i++) ((uint32_t*)e)[(i+k)%6]=((uint32_t*)d)[i]; return e[0]*e[1]+e[2];"),
    "float_high_store": ("", "double d[3]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]+1; ((float*)d)[2*k+1]=(float)x[2]; return d[0]*d[1]*d[2];"),
    "char_write_dyn": ("", "double d[3]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]+1; ((unsigned char*)d)[8*k+7]=0x3f; return d[0]*d[1]*d[2];"),
    "word_write_dyn2": ("", "double d[3]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]+1; ((int*)d)[5*k%6]=0x3ff00000; return d[0]*d[1]*d[2];"),
    "lrint_bits": ("", "long i=lrint(x[0]*4503599627370496.0*1.44)+(1023L<<52); double d; memcpy(&d,&i,8); return d*x[2];"),
    "exponent_of_a_static": ("static union{double d;struct{int lo,hi;}n;} G;", "G.n.hi=(int)(1512775.4*x[0]*x[1])+(1072693248-60801); return G.d*x[2];"),
    "exponent_of_a_static_alone": ("static union{double d;struct{int lo,hi;}n;} G;", "G.n.hi=(int)(1512775.4*x[0]*x[1]*x[2])+(1072693248-60801); return G.d;"),
    "power_by_bits": ("", "union{float f;int i;} v; v.f=(float)(x[0]*x[1]); v.i=(int)(1.5f*(v.i-1064866805)+1064866805); return v.f;"),
    "power_by_upper_half": ("", "union{double d;int i[2];} u; u.d=x[0]*x[1]; u.i[1]=(int)(x[2]*(u.i[1]-1072632447)+1072632447); u.i[0]=0; return u.d;"),
    "number_through_calls": ("static NOINLINE long bits(double d){ long w; memcpy(&w,&d,8); return w; } static NOINLINE double mk(long w){ double d; memcpy(&d,&w,8); return d; }", "return mk((long)(0.5*(double)bits(x[0]*x[1])+0.5*4606985713057410000.0));"),
}
ROUNDED = {
    "intptr_lo": ("", "double d = x[0]*x[1]; ((int*)&d)[0] = (int)k; return d*x[2];"),
    "mask_lo": ("", "double d = x[0]*x[1]; ((uint32_t*)&d)[0] &= 0xff000000u; return d*x[2];"),
    "array_half": ("", "double d[4]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]; for(int i=0;i<3;i++) ((uint32_t*)d)[2*i]=0; return d[0]*d[1]+d[2];"),
    "halfstore_shift": ("", "double d=x[0]*x[1]; uint64_t u; memcpy(&u,&d,8); uint32_t hi=u>>32; uint64_t w=(uint64_t)hi<<32; double e; memcpy(&e,&w,8); return e*x[2];"),
}
RIGHT = {
    "byte_sign": ("", "double d=x[0]*x[1]; ((unsigned char*)&d)[7]^=0x80; return d*x[2];"),
    "hi_sign": ("", "double d=x[0]*x[1]; ((uint32_t*)&d)[1]^=0x80000000u; return d*x[2];"),
    "hi_fabs": ("", "double d=x[0]*x[1]; ((uint32_t*)&d)[1]&=0x7fffffffu; return d*x[2];"),
    "ldexp_mul": ("", "uint64_t u=(uint64_t)(1023+k)<<52; double s; memcpy(&s,&u,8); return s*x[0]*x[1];"),
    "pair_moved_as_double": ("", "union{double d; struct{float a,b;} s;} u,v; u.s.a=(float)x[0]; u.s.b=(float)x[1]*2; v.d=u.d; return v.s.a*v.s.b*x[2];"),
    "chars_copy": ("", "double d=x[0]*x[1], e; for(int i=0;i<8;i++) ((char*)&e)[i]=((char*)&d)[i]; return e*x[2];"),
    "half_write_full_overwrite": ("", "double d; ((int*)&d)[0]=1; ((int*)&d)[1]=2; d=x[0]*x[1]; return d*x[2];"),
    "bitfield_expread": ("", "union{double d; struct{uint64_t m:52,e:11,s:1;} b;} u; u.d=x[0]*x[1]; int e=u.b.e-1023; return u.d*e*x[2];"),
    "exp_hi": ("", "double d=x[0]*x[1]; uint32_t h=((uint32_t*)&d)[1]; int e=(int)(h>>20&0x7ff)-1023; return d*x[2]*e+e;"),
    "exp_hi_noinline": ("static NOINLINE double ex(double d){ union{double d;uint32_t w[2];} u; u.d=d; int k=u.w[1]>>20; return k-1020+d; }", "return x[2]*ex(x[0]*x[1]);"),
    "exp_hi_add": ("", "double d=x[0]*x[1]; uint32_t h=((uint32_t*)&d)[1]; h+=0x3ff00000-0x3fe6a09e; int e=(int)(h>>20)-0x3ff; return d*x[2]*e+e;"),
    "exp_impl": ("", "double t=x[0]*x[1], s=0; int n=(int)(t*1.4426950408889634); double r=t-n*0.6931471805599453; uint64_t u=(uint64_t)(n+1023)<<52; double sc; memcpy(&sc,&u,8); s=1; for(int i=14;i>0;i--) s=1+r*s/i; return s*sc*x[2];"),
    "exp_impl_hi": ("", "double t=x[0]*x[1], s=0; int n=(int)(t*1.4426950408889634); double r=t-n*0.6931471805599453; double sc=0; ((uint32_t*)&sc)[1]=(uint32_t)(n+1023)<<20; s=1; for(int i=14;i>0;i--) s=1+r*s/i; return s*sc*x[2];"),
    "exp_impl_f": ("", "float t=(float)(x[0]*x[1]), s=0; int n=(int)(t*1.442695f); float r=t-n*0.69314718f; uint32_t u=(uint32_t)(n+127)<<23; float sc; memcpy(&sc,&u,4); s=1; for(int i=9;i>0;i--) s=1+r*s/i; return s*sc*x[2];"),
    "union_reuse_loop": ("", "union{double d;long i;} u; double s=0; for(int j=0;j<6;j++){ if(j%2==0) u.d=x[j%3]*x[1]; else u.i=j; if(j%2==0) s+=u.d; else s+=u.i*x[2]; } return s;"),
    "union_reuse_int": ("", "union{double d;int i;} u; double s=0; for(int j=0;j<6;j++){ if(j%2==0) u.d=x[j%3]*x[1]; else u.i=j; if(j%2==0) s+=u.d; else s+=u.i*x[2]; } return s;"),
    "union_reuse_pair": ("", "union{double d;struct{int a,b;}p;} u[6]; double s=0; for(int r=0;r<2;r++){ for(int j=0;j<6;j++){ if((j+r+k)%2==0) u[j].d=x[j%3]*x[1]; else {u[j].p.a=j;u[j].p.b=2;}} for(int j=0;j<6;j++) { if((j+r+k)%2==0) s+=u[j].d; else s+=(u[j].p.a+u[j].p.b)*x[2];} } return s;"),
    "union_float_mem": ("", "union{double d;float f;} u[6]; double s=0; for(int r=0;r<2;r++){ for(int j=0;j<6;j++){ if((j+r+k)%2==0) u[j].d=x[j%3]*x[1]; else u[j].f=(float)x[0];} for(int j=0;j<6;j++) { if((j+r+k)%2==0) s+=u[j].d; else s+=u[j].f*x[2];} } return s;"),
    "union_floats_mem": ("", "union{double d;float f[2];} u[6]; double s=0; for(int r=0;r<2;r++){ for(int j=0;j<6;j++){ if((j+r+k)%2==0) u[j].d=x[j%3]*x[1]; else {u[j].f[0]=(float)x[0];u[j].f[1]=(float)x[1];}} for(int j=0;j<6;j++) { if((j+r+k)%2==0) s+=u[j].d; else s+=u[j].f[0]*x[2]*u[j].f[1];} } return s;"),
    "words_copy": ("", "double d[3],e[3]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]; for(int i=0;i<6;i++) ((uint32_t*)e)[i]=((uint32_t*)d)[i]; return e[0]*e[1]+e[2];"),
    "workspace": ("", "int n=(int)k+1; double *w=malloc(200); int *iw=(int*)(w+n); for(int i=0;i<n;i++) w[i]=x[i%3]*x[1]; for(int i=0;i<n;i++) iw[i]=(i*7)%n; double s=0; for(int i=0;i<n;i++) s+=w[iw[i]]*(i+1)*w[i]; free(w); return s;"),
    "workspace_ints_first": ("", "int n=(int)k+2; char *w=malloc(200); int *iw=(int*)w; double *d=(double*)(w+4*n); for(int i=0;i<n;i++) d[i]=x[i%3]*x[1]; for(int i=0;i<n;i++) iw[i]=(i*7)%n; double s=0; for(int i=0;i<n;i++) s+=d[iw[i]]*(i+1)*d[i]; free(w); return s;"),
    "workspace_flags": ("", "int n=(int)k+1; double *w=malloc(200); int *iw=(int*)(w+n); for(int i=0;i<n;i++) w[i]=x[i%3]*x[1]; for(int i=0;i<n;i++) iw[i]=i+100; double s=0; for(int i=0;i<n;i++) s+=w[i]*(i+1)*w[i]; s+=iw[k]; free(w); return s;"),
    "bump_arena": ("static char pool[1024]; static long pos; static void *al(long n){ void *p=pool+pos; pos+=(n+15)&~15L; return p; }", "pos=0; double *a=al(24); int *b=al(12); double *c=al(24); for(int i=0;i<3;i++){ a[i]=x[i]*x[i]; b[i]=2-i; c[i]=a[i]*x[0]; } double s=0; for(int i=0;i<3;i++) s+=a[b[i]]*c[i]; return s;"),
    "sign_word_test": ("", "double d[3]; for(int i=0;i<3;i++) d[i]=x[i]*x[i]-1; double s=0; for(int i=0;i<3;i++) s+= ((int*)d)[2*((i+k)%3)+1]<0 ? d[i]*x[0] : 2*d[i]; return s;"),
    "sign_number": ("", "double d=x[0]*x[1]; uint64_t u; memcpy(&u,&d,8); return d*(1-2*(double)(u>>63));"),
    "rng_bits_mem": ("", "double d[3]; for(int i=0;i<3;i++){ uint64_t s=(k+i)*0x9e3779b97f4a7c15ULL; ((uint64_t*)d)[i]=(s>>12)|0x3ff0000000000000ULL; } for(int i=0;i<3;i++) d[i]=d[i]*x[i]*x[0]; return d[0]*d[1]+d[2];"),
    "int_table": ("", "double t=x[0]*x[1]; int n=(int)(t*4); uint64_t tab[8]={0x3ff0000000000000ULL,0x3ff1000000000000ULL,0x3ff2000000000000ULL,0x3ff3000000000000ULL,0x3ff4000000000000ULL,0x3ff5000000000000ULL,0x3ff6000000000000ULL,0x3ff7000000000000ULL}; uint64_t u=tab[n&7]+((uint64_t)(n>>3)<<52); double d; memcpy(&d,&u,8); return d*t*x[2];"),
}


def source(table: dict[str, tuple[str, str]]) -> str:
    """One file with all programs of a table: helpers and functions are named after their program."""
    text = HEADER
    for name, (helpers, body) in table.items():
        text += f"#define f {name}\n"
        for word in _NAMES:
            text += f"#define {word} {name}_{word}\n"
        text += f"{helpers}\ndouble f(const double *x, long k) {{ {body} }}\n#undef f\n"
        text += "".join(f"#undef {word}\n" for word in _NAMES)
    return text


_NAMES = "cut G S sink hi mk bits scale ex pool pos al".split()
