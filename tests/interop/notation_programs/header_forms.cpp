// The C++ header: function objects with their activity, results that are objects, split mode, batches.
#include <enzyme/enzyme>
#include <cmath>
#include <cstdio>
#include <vector>
#include <array>
static int wrong = 0;
static void is(double have, double want, const char *what) { if (!(std::fabs(have - want) <= 1e-12 * (1 + std::fabs(want)))) wrong++, std::printf("%s: %g is not %g\n", what, have, want); }
template<class T> struct wrapper { static double call(const T *f, double x){ return (*f)(x);} };
struct Kernel { double a; int n; double operator()(double x, double y) const { double r=a; for(int i=0;i<n;i++) r*=x; return r*y; } };
std::vector<double> twice(const std::vector<double> &v){ std::vector<double> r; for(double x: v) r.push_back(2*x*x); return r; }
struct T2 { double v[2][2]; };
T2 ten(const T2 *a, const double *w){ T2 r; for(int i=0;i<2;i++)for(int j=0;j<2;j++) r.v[i][j]=a->v[i][j]*a->v[j][i]* *w; return r; }
void resid(double *z, double *f, void *ctx){ double *c=(double*)ctx; for(int i=0;i<3;i++) f[i]=z[i]*z[i]*c[i]; }
double vres(double *z, double *f, void *ctx){ resid(z,f,ctx); return 0; }
int main(){
  double k=2;
  auto lam=[k](double x){ return k*x*x*x; };
  // Const<lambda> as function
  auto r=enzyme::autodiff<enzyme::Reverse>(enzyme::Const<decltype(lam)>{lam}, enzyme::Active<double>{2.0});
  is(enzyme::get<0>(enzyme::get<0>(r)), 24, "const lambda");
  auto f=enzyme::autodiff<enzyme::Forward>(enzyme::Const(lam), enzyme::Duplicated<double>{2.0,1.0});
  is(enzyme::get<0>(f), 24, "const lambda fwd");
  Kernel kern{3,2}; 
  auto g=enzyme::autodiff<enzyme::Forward>(kern, enzyme::Duplicated<double>{2.0,1.0}, enzyme::Const<double>{5.0});
  is(enzyme::get<0>(g), 60, "functor fwd");
  Kernel dk{0,0};
  auto g2=enzyme::autodiff<enzyme::Reverse>(enzyme::Duplicated<Kernel&>{kern,dk}, enzyme::Active<double>{2.0}, enzyme::Const<double>{5.0});
  is(enzyme::get<0>(enzyme::get<0>(g2)), 60, "functor dup"); is(dk.a, 20, "functor dup member");
  std::vector<double> v{1,2,3}, dv{1,1,1};
  auto tv=enzyme::get<0>(enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<std::vector<double>>>(twice, enzyme::Duplicated<const std::vector<double>&>(v,dv)));
  is(tv[2], 12, "vector result");
  T2 a{{{1,2},{3,4}}}, da{{{1,0},{0,0}}}; double w=2;
  auto tt=enzyme::get<0>(enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<T2>>(ten, enzyme::Duplicated<const T2*>(&a,&da), enzyme::Const<const double*>(&w)));
  is(tt.v[0][0], 4, "tensor");
  double z[3]={1,2,3}, dz[3]={1,1,1}, fo[3], df[3]={0}, c[3]={1,2,3}, dc[3]={0};
  (void)enzyme::autodiff<enzyme::Forward, enzyme::Const<double>>(vres, enzyme::Duplicated<double*>{z,dz}, enzyme::Duplicated<double*>{fo,df}, enzyme::Duplicated<void*>{static_cast<void*>(c),static_cast<void*>(dc)});
  is(df[2], 18, "mfem form");
  auto wr=[](const void *p, double x){ return (*(const decltype(lam)*)p)(x); };
  is(enzyme::get<0>(enzyme::autodiff<enzyme::Forward, enzyme::DuplicatedNoNeed<double>>(+wr, enzyme::Const((const void*)&lam), enzyme::Duplicated<double>{2.0,1.0})), 24, "tfel form");
  // split
  auto prod=+[](double x, double y){ return x*std::sin(y); };
  double (*pf)(double,double)=prod;
  auto half=enzyme::autodiff<enzyme::ReverseSplitWithPrimal>(pf, enzyme::Active{2.0}, enzyme::Active{0.5});
  is(enzyme::get<1>(half), 2*std::sin(0.5), "split value");
  auto gs=enzyme::reverse(pf, enzyme::get<0>(half), 3.0, enzyme::Active{2.0}, enzyme::Active{0.5});
  is(enzyme::get<0>(gs), 3*std::sin(0.5), "split x"); is(enzyme::get<1>(gs), 6*std::cos(0.5), "split y");
  double zz[3]={1,2,3}, dzz[3]={0}, ff[3], dff[3]={1,1,1}, cc[3]={1,2,3}, dcc[3]={0};
  auto vh=enzyme::autodiff<enzyme::ReverseSplit>(resid, enzyme::Duplicated<double*>{zz,dzz}, enzyme::Duplicated<double*>{ff,dff}, enzyme::Duplicated<void*>{(void*)cc,(void*)dcc});
  enzyme::reverse(resid, enzyme::get<0>(vh), enzyme::Duplicated<double*>{zz,dzz}, enzyme::Duplicated<double*>{ff,dff}, enzyme::Duplicated<void*>{(void*)cc,(void*)dcc});
  is(dzz[2], 18, "split void"); is(dcc[1], 4, "split void c");
  auto lh=enzyme::autodiff<enzyme::ReverseSplit>(lam, enzyme::Active{2.0});
  is(enzyme::get<0>(enzyme::reverse(lam, enzyme::get<0>(lh), 1.0, enzyme::Active{2.0})), 24, "split lambda");
  // batch
  auto bt=enzyme::autodiff<enzyme::Forward>(pf, enzyme::BatchDuplicated<double,2>{2.0,{1.0,0.0}}, enzyme::BatchDuplicated<double,2>{0.5,{0.0,1.0}});
  is(enzyme::get<0>(bt)[0], std::sin(0.5), "batch x"); is(enzyme::get<0>(bt)[1], 2*std::cos(0.5), "batch y");
  auto bp=enzyme::autodiff<enzyme::Forward, enzyme::Duplicated<double>>(pf, enzyme::BatchDuplicated{2.0,std::array{1.0,2.0,3.0}}, enzyme::Const{0.5});
  is(enzyme::get<0>(bp), 2*std::sin(0.5), "batch value"); is(enzyme::get<1>(bp)[2], 3*std::sin(0.5), "batch 2");
  double e1[3]={1,0,0}, e2[3]={0,1,0}, o1[3]={0}, o2[3]={0};
  enzyme::autodiff<enzyme::Forward>(resid, enzyme::BatchDuplicated<double*,2>{zz,{e1,e2}}, enzyme::BatchDuplicated<double*,2>{ff,{o1,o2}}, enzyme::Const<void*>{(void*)cc});
  is(o1[0],2,"batch mem"); is(o2[1],8,"batch mem 2");
  auto bl=enzyme::autodiff<enzyme::Forward>(enzyme::Const{lam}, enzyme::BatchDuplicated<double,2>{2.0,{1.0,0.5}});
  is(enzyme::get<0>(bl)[1], 12, "batch lambda");
  std::puts(wrong? "WRONG":"all right"); return wrong;
}
