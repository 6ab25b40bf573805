// Two-dimensional vectors in everyday use: products, ratios and distances of components.
#include <cstdio>
#include <complex>
#include <cmath>
void __enzyme_autodiff(void*,...);
struct V{double x,y;};
static double cross(V a,V b){return a.x*b.y-a.y*b.x;}
static V mul(V a,V b){return{a.x*b.x,a.y*b.y};}
double f1(const V*p){V a=mul(p[0],p[1]);return a.x*a.y;}                 // product of components
double f2(const V*p){V a=mul(p[0],p[1]);return a.x/a.y;}                 // ratio
double f3(const V*p){V a=mul(p[0],p[1]);return sqrt(a.x)*sqrt(a.y);}
double f4(const V*p){V a=mul(p[0],p[1]);return cross(a,p[0])*a.x*a.y;}
double f5(const V*p){V d{p[1].x-p[0].x,p[1].y-p[0].y};return sqrt(d.x*d.x+d.y*d.y);}  // distance
double f6(const V*p){V d{p[1].x-p[0].x,p[1].y-p[0].y};return exp(-d.x*d.x)*exp(-d.y*d.y);}
double f7(const V*p){double a=(1-p[0].x)*(1-p[0].y);return a*p[1].x*p[1].y;}  // bilinear weight
double f8(const V*p){V a{p[0].x+1,p[0].y+1};return a.x*a.y+ (a.x-p[1].x)*(a.y-p[1].y);}  // box area
double f9(const V*p){std::complex<double> a(p[0].x,p[0].y),b(p[1].x,p[1].y);return std::norm(a*b)*std::real(a);}
static int wrong;
typedef double(*F)(const V*);
static void ck(int n,F f,const V*p,const double*g){const double*q=(const double*)p;for(int i=0;i<4;i++){double z[4]={q[0],q[1],q[2],q[3]},h=1e-6;z[i]+=h;double u=f((V*)z);z[i]-=2*h;double d=(u-f((V*)z))/(2*h);if(!(std::fabs(d-g[i])<=1e-4*(1+std::fabs(d))))wrong++,std::printf("f%d d%d got %g want %g\n",n,i,g[i],d);}}
#define R(n) {double g[4]={0};__enzyme_autodiff((void*)f##n,p,g);ck(n,f##n,p,g);}
int main(){V p[2]={{.7,1.3},{.9,.4}};R(1)R(2)R(3)R(4)R(5)R(6)R(7)R(8)R(9)return wrong;}
